"""With both shapes installed, kubectl's words for TrainJobs and runtimes mean today's, and both are applied.

With FULL=1, too, what would be if the older ones had today's plurals, which is why they do not.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from lab.cluster import Cluster
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.legacy.older.user import Teammate
from tests.legacy.older.world import KINDS, OLDER, TODAY, runtime, train_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

Tree = dict[str, Any]

WORDS = {
    "TrainJob": ("trainjobs", "trainjob", "TrainJob", "trainjobs.trainer.kubeflow.org"),
    "TrainingRuntime": ("trainingruntimes", "trainingruntime", "TrainingRuntime"),
    "ClusterTrainingRuntime": ("clustertrainingruntimes", "clustertrainingruntime", "ClusterTrainingRuntime"),
}
OLDER_WORDS = {
    "TrainJob": ("v2alpha1trainjobs", "v2alpha1trainjob", "TrainJob.v2alpha1.kubeflow.org"),
    "TrainingRuntime": ("v2alpha1trainingruntimes", "v2alpha1trainingruntime"),
    "ClusterTrainingRuntime": ("v2alpha1clustertrainingruntimes", "v2alpha1clustertrainingruntime"),
}


@pytest.fixture
def both(user: Teammate) -> Teammate:
    """Return a user who has an object of each kind in each shape, each with a name of its own."""
    user.apply(
        runtime(TODAY, f"{user.namespace}-ours"),
        runtime(OLDER, f"{user.namespace}-older"),
        runtime(TODAY, "ours", kind="TrainingRuntime"),
        runtime(OLDER, "older", kind="TrainingRuntime"),
        train_job(TODAY, "ours"),
        train_job(OLDER, "older"),
    )
    user.wait_sync("older")
    return user


def test_words_for_todays_kinds_show_todays_objects(both: Teammate, report: SuiteReport) -> None:
    asked = 0
    for words in WORDS.values():
        for word in words:
            shown = both.fresh("get", word, "--output=name").split()
            assert shown
            assert {one.partition("/")[0].partition(".")[2] for one in shown} == {"trainer.kubeflow.org"}, word
            asked += 1
    report.figure("kubectl_words_for_today", asked)


def test_words_for_older_kinds_show_older_objects(both: Teammate) -> None:
    for kind, words in OLDER_WORDS.items():
        name = f"{both.namespace}-older" if kind.startswith("Cluster") else "older"
        for word in words:
            assert json.loads(both.fresh("get", word, name, "--output=json"))["apiVersion"] == OLDER


@pytest.mark.parametrize("kind", WORDS)
def test_explain_stays_with_today(user: Teammate, kind: str) -> None:
    for word in (*WORDS[kind][:2], kind):
        lines = [line.split() for line in user.fresh("explain", word).splitlines() if line]
        assert ["GROUP:", "trainer.kubeflow.org"] in lines
        assert ["VERSION:", "v1alpha1"] in lines
    older = user.fresh("explain", OLDER_WORDS[kind][0])
    lines = [line.split() for line in older.splitlines() if line]
    assert ["GROUP:", "kubeflow.org"] in lines
    assert ["VERSION:", "v2alpha1"] in lines


def test_what_is_patched_and_deleted_by_todays_words_is_todays(both: Teammate) -> None:
    both.fresh("label", "trainjob", "ours", "touched=yes")
    refused = both.fresh("label", "trainingruntime", "older", "touched=yes", check=False)
    assert 'trainingruntimes.trainer.kubeflow.org "older" not found' in refused
    both.fresh("delete", "trainjob/ours", "trainingruntime/ours")
    assert both.names("v2alpha1trainjobs") == ["older"]
    assert both.names("v2alpha1trainingruntimes") == ["older"]


def test_the_state_of_older_ones_is_shown(both: Teammate) -> None:
    header, line = both.fresh("get", "v2alpha1trainjobs").splitlines()
    assert header.split() == ["NAME", "STATE", "IN", "SYNC", "AGE"]
    assert line.split()[:2] == ["older", "True"]  # it has not run yet


def test_nothing_of_it_is_called_as_anything_else(user: Teammate) -> None:
    lines = [line.split() for line in user.fresh("api-resources", "--no-headers", "--output=wide").splitlines()]
    called = {line[0]: line for line in lines if any("kubeflow.org/v2alpha1" in part for part in line)}
    assert set(called) == set(KINDS)
    assert all(line[1] == "kubeflow.org/v2alpha1" for line in called.values())  # where short names would stand


def test_a_name_as_kubectl_prints_it_finds_what_it_is_of(both: Teammate) -> None:
    """It prints the kind and the group, which is no resource of that group, and is understood all the same."""
    printed = both.fresh("get", "v2alpha1trainjobs", "--output=name").strip()
    assert printed == "trainjob.kubeflow.org/older"
    assert json.loads(both.fresh("get", printed, "--output=json"))["apiVersion"] == OLDER
    ours = "trainjob.trainer.kubeflow.org/ours"
    assert json.loads(both.fresh("get", ours, "--output=json"))["apiVersion"] == TODAY


@pytest.fixture
def taken() -> Iterator[Cluster]:
    """Return a cluster where the older TrainJob has the plural of today's."""
    cluster = Cluster.up(f"plurals-{os.getpid()}", owned=True)
    try:
        trainplane.install_crds(cluster)
        (crd,) = documents(REPOSITORY / "manifests/crds-legacy/kubeflow.org_v2alpha1trainjobs.yaml")
        crd["metadata"]["name"] = "trainjobs.kubeflow.org"
        crd["spec"]["names"] |= {"plural": "trainjobs", "singular": "trainjob"}
        cluster.apply(crd)
        cluster.wait_established("trainjobs.kubeflow.org")
        yield cluster
    finally:
        cluster.down()


@pytest.mark.full
def test_with_todays_plural_the_older_ones_would_take_its_words(taken: Cluster) -> None:
    user = Teammate(taken, "default")
    user.apply(train_job(TODAY, "ours"), train_job(OLDER, "older"))
    for word in ("trainjobs", "trainjob"):
        assert user.fresh("get", word, "--output=name").split() == ["trainjob.kubeflow.org/older"]

    def explained() -> bool:  # the API server publishes schemas by itself, after it serves their objects
        told = user.fresh("explain", "trainjob", check=False)
        return ["GROUP:", "kubeflow.org"] in [line.split() for line in told.splitlines()]

    user.wait("an explanation", explained)
    by_group = user.fresh("get", "trainjobs.trainer.kubeflow.org", "--output=name").split()
    assert by_group == ["trainjob.trainer.kubeflow.org/ours"]
