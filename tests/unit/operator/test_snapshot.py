from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.operator.objects import runtime, train_job
from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.operator import yamltext
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError, SnapshotError
from trainplane.operator.snapshot import ConfigMap, config_map, decode, own_text

JOB = document.view(train_job(), TrainJob)


def kept(**changes: Any) -> ConfigMap:
    tree = config_map(JOB.metadata, yamltext.dump(runtime()))
    tree["metadata"].update(changes.pop("metadata", {}))
    return msgspec.convert({**tree, **changes}, ConfigMap)


def read(found: ConfigMap) -> dict[str, Any]:
    return decode(own_text(found, JOB.metadata), JOB.spec.runtime_ref, found.metadata.name).tree


def test_shape() -> None:
    tree = config_map(JOB.metadata, "text")
    assert tree["apiVersion"] == "v1"
    assert tree["kind"] == "ConfigMap"
    assert tree["metadata"]["name"] == "job-runtime-snapshot"
    assert tree["metadata"]["namespace"] == "team"
    assert tree["data"] == {"runtime": "text"}
    assert tree["immutable"] is True
    assert tree["metadata"]["ownerReferences"][0]["controller"] is True


def test_there_and_back() -> None:
    assert read(kept()) == runtime()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metadata": {"ownerReferences": []}}, "not controlled by this TrainJob"),
        (
            {"metadata": {"ownerReferences": [{"kind": "Deployment", "name": "job", "uid": "u", "controller": True}]}},
            "not",
        ),
        ({"data": None}, "has no key 'runtime'"),
        ({"data": {"other": "x"}}, "has no key 'runtime'"),
        ({"data": {"runtime": "a: [b"}}, "holds no YAML"),
        ({"data": {"runtime": "- a"}}, "holds no object"),
        ({"data": {"runtime": "spec: {mlPolicy: 7}"}}, r"cannot be read: spec\.mlPolicy"),
        (
            {"data": {"runtime": yamltext.dump(runtime("other"))}},
            "names ClusterTrainingRuntime.trainer.kubeflow.org 'torch'",
        ),
        ({"data": {"runtime": yamltext.dump(runtime(kind="TrainingRuntime"))}}, "keeps TrainingRuntime"),
        (
            {"data": {"runtime": yamltext.dump({**runtime(), "apiVersion": "kubeflow.org/v1"})}},
            r"Runtime\.kubeflow\.org",
        ),
    ],
)
def test_a_snapshot_that_cannot_be_used_says_why_and_what_to_do(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises((SnapshotError, ForeignObjectError), match=problem) as raised:
        read(kept(**changes))
    assert "delete" in str(raised.value) or "cannot be read" in str(raised.value)


def test_the_snapshot_of_an_earlier_trainjob_is_not_an_error_of_the_user() -> None:
    earlier = [{"kind": "TrainJob", "name": "job", "uid": "earlier", "controller": True}]
    with pytest.raises(EarlierSelfError):
        read(kept(metadata={"ownerReferences": earlier}))


def test_the_group_of_old_documents_means_todays() -> None:
    job = document.view(train_job(runtime_ref={"apiGroup": "kubeflow.org"}), TrainJob)
    assert decode(yamltext.dump(runtime()), job.spec.runtime_ref, "name").tree == runtime()


@pytest.mark.parametrize(
    "word", ["y", "n", "yes", "Off", "true", "null", "~", "1e3", "0o14", "1_000", "12:30:45", ".5"]
)
def test_words_that_yaml_libraries_disagree_on_are_quoted(word: str) -> None:
    assert yamltext.dump({"value": word}) == f'value: "{word}"\n'


def test_plain_words_stay_plain_and_lines_stay_lines() -> None:
    text = yamltext.dump({"image": "ghcr.io/kubeflow/torch", "script": "a\nb\n", "none": None, "many": [1, 2.5, True]})
    assert text == "image: ghcr.io/kubeflow/torch\nmany:\n- 1\n- 2.5\n- true\nnone: null\nscript: |\n  a\n  b\n"


def test_the_references_yaml_is_read() -> None:
    text = 'creationTimestamp: "2026-01-01T00:00:00Z"\nplain: 2026-01-01T00:00:00Z\ncount: 3\nempty: {}\n'
    assert yamltext.load(text) == {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "plain": "2026-01-01T00:00:00Z",
        "count": 3,
        "empty": {},
    }


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_any_tree_survives(tree: Any) -> None:
    text = yamltext.dump(tree)
    assert yamltext.load(text) == tree
    assert yaml.safe_load(text) == tree
