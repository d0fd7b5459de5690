"""Bundles: everything that explains, and nothing that is secret."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.client.reading.documents import condition, ended, event, pod, train_job
from trainplane.cli import main
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts, Line

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
TRACEBACK = ["Traceback (most recent call last):", '  File "x.py", line 1, in f', "KeyError: 'x'"]
CANARY = "Zk3vQ9xT7bLw2RfY8mNc4HsJ1gPd6UaE0oIiKtVq"


def facts() -> Facts:
    failed = condition("Failed", "FailedJobs", "jobset failed")
    return Facts(
        train_job(conditions=[failed]),
        [pod(0, "Failed", state=ended(1), spec={"nodeName": "gpu-7", "containers": [{"name": "node"}]})],
        [event("Pod", "a-node-0-0-abcde", "Started")],
        logs={"node-0": [Line(text, NOW) for text in TRACEBACK]},
        unread=["nodes: forbidden"],
    )


def test_a_case_is_explained_from_its_file_as_it_was() -> None:
    before = explain(facts(), NOW)
    assert explain(read_bundle(write_bundle(facts())), NOW) == before
    assert (before.cause, before.node) == ("PythonError", "gpu-7")


def test_nothing_that_a_user_wrote_as_a_value_is_in_it() -> None:
    env = [{"name": "TOKEN", "value": CANARY}, {"name": "X", "valueFrom": {"secretKeyRef": {"name": CANARY}}}]
    container = {"name": "node", "env": env, "args": [CANARY], "command": ["sh", CANARY]}
    spec = {"containers": [container], "initContainers": [container], "volumes": [{"name": "v", "csi": {"x": CANARY}}]}
    job = train_job(
        spec={"trainer": {"env": env, "args": [CANARY], "command": [CANARY]}, "initializer": {"x": CANARY}},
        metadata={"annotations": {"note": CANARY}, "labels": {"note": CANARY}},
    )
    tree = pod(0, spec=spec, annotations={"note": CANARY}, labels={"note": CANARY})
    told = write_bundle(Facts(job, [tree], jobset={"spec": {"x": CANARY}}, workload={"spec": {"x": CANARY}}))
    assert CANARY not in told


def test_credentials_are_taken_out_of_all_texts_wherever_they_stand() -> None:
    drawn = random.Random(3)  # noqa: S311 no secret

    def spoil(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: spoil(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [spoil(value) for value in tree]
        if not isinstance(tree, str):
            return tree
        forms = ("{}", "token={}", "https://joe:{}@x.example", "Bearer {}", "hf_{}", '"password": "{}"')
        return f"{tree} {drawn.choice(forms).format(CANARY)}" if drawn.random() < 0.5 else tree

    whole = facts()
    for _ in range(300):
        logs = {"node-0": [Line(spoil(text), NOW) for text in TRACEBACK]}
        spoilt = Facts(spoil(whole.job), spoil(whole.pods), spoil(whole.events), logs=logs, unread=spoil(["x"]))
        told = write_bundle(spoilt)
        assert CANARY[8:] not in told
        assert explain(read_bundle(told), NOW).state


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "x"}', '{"format": "trainplane.dev/bundle/v1"}', "[" * 100_000]
)
def test_what_is_no_bundle_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it is no"):
        read_bundle(text)


def test_a_bundle_of_strange_parts_is_read_as_far_as_it_goes() -> None:
    tree = json.loads(write_bundle(facts()))
    for part in ("pods", "events", "logs", "nodes", "unread", "view", "jobs"):
        for value in (None, [], {}, "x", 3, [3], {"x": 3}, [[1, 2]]):
            assert explain(read_bundle(json.dumps({**tree, part: value})), NOW).state == "Failed"


def test_the_command_explains_a_bundle(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.json"
    path.write_text(write_bundle(facts()))
    assert main(["explain", "--bundle", str(path)]) == 1
    told = capsys.readouterr().out
    assert "node-0 on gpu-7 raised a Python error" in told
    assert "PythonError (certain)" in told
    assert main(["explain", "--bundle", str(path), "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["cause"] == "PythonError"
    path.write_text("no bundle")
    assert main(["explain", "--bundle", str(path)]) == 2
    assert "it is no JSON" in capsys.readouterr().err
