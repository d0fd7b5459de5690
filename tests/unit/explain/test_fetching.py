"""An initializer of ours says why it failed: each of its causes is named by a class, and quoted."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.reading.documents import ended, pod
from trainplane.explain.catalogue import CLASSES, class_of
from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts
from trainplane.explain.faults import fault_of, first, heals, is_certain_error, is_sure, kept_fault, sentence
from trainplane.explain.fetching import CAUSES, CODES
from trainplane.initializers import errors
from trainplane.initializers.console import Console
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.api.trainjob import FirstFault

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.InitializerError) and kind is not errors.InitializerError
]
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOISE = ["dataset: s3://b/p to /workspace/dataset", "urllib.error.HTTPError: HTTP Error 403: Forbidden"]


def failed(error: errors.InitializerError, log: Path, role: str = "dataset-initializer", **others: Any) -> Any:
    """Return the pod of a step that left this error as its last words, as the program itself writes them."""
    log.write_text("")
    Console(Secrets({}), io.StringIO(), io.StringIO(), log).fail(error)
    spec = {"nodeName": "gpu-7", "containers": [{"name": role}]}
    return pod(role=role, phase="Failed", state=ended(error.exit_code, message=log.read_text()), spec=spec, **others)


def found(tree: Any, lines: Any = ()) -> FirstFault:
    one = fault_of(tree, lines)
    assert one is not None
    return one


def test_every_cause_of_the_program_has_a_class() -> None:
    assert {kind("x").cause for kind in KINDS} == set(CAUSES)
    assert set(CAUSES.values()) <= set(CLASSES)
    assert {kind("x").exit_code for kind in KINDS} == CODES


@pytest.mark.parametrize("lines", [[], NOISE], ids=["message", "log"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_is_named_and_quoted_with_our_remedy(kind: Any, lines: list[str], tmp_path: Path) -> None:
    error = kind("s3://b/p is not to be had")
    one = found(failed(error, tmp_path / "log"), lines)
    assert one.cause == CAUSES[error.cause]
    assert one.message == f"{error.cause}: s3://b/p is not to be had"
    assert is_sure(one, lines)
    said = sentence(one)
    assert said.startswith(f"dataset-initializer on gpu-7 {class_of(one.cause).says} (exit code {error.exit_code}): ")
    assert one.message in said
    remedy = class_of(one.cause).remedy
    assert said.endswith(f". {remedy[:1].upper()}{remedy[1:]}.")
    assert heals(one) == error.retryable
    assert is_certain_error(one) == (not error.retryable)


def test_a_whole_explanation_is_certain(tmp_path: Path) -> None:
    tree = failed(errors.DeniedError("the store refused these credentials"), tmp_path / "log")
    job = {"metadata": {"name": "job"}, "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "x"}]}}
    explanation = explain(Facts(job, pods=[tree]), NOON)
    assert (explanation.cause, explanation.certainty, explanation.step) == (
        "AccessDenied",
        "certain",
        "dataset-initializer",
    )
    assert explanation.detail == "Denied: the store refused these credentials"
    assert "Secret" in explanation.remedy


@pytest.mark.parametrize(
    ("container", "code", "message"),
    [
        ("node", 1, "Denied: it is said by who fetches nothing"),
        ("dataset-initializer", 2, "Denied: by an exit code that the program has not"),
        ("dataset-initializer", 1, "Traceback (most recent call last):\nDenied: somewhere below"),
        ("dataset-initializer", 1, "DeniedError: another program's"),
        ("dataset-initializer", 1, "Denied:"),
        ("dataset-initializer", 137, "NotFound: before it was killed"),
    ],
)
def test_others_words_are_not_taken_for_it(container: str, code: int, message: str) -> None:
    tree = pod(
        role=container, phase="Failed", state=ended(code, message=message), spec={"containers": [{"name": container}]}
    )
    assert found(tree).cause not in {"AccessDenied", "DataMissing"}


def test_what_a_pod_writes_is_bounded_and_cleaned() -> None:
    hostile = "Denied: \x1b[31m" + "password=hunter2secret " + "x" * 100_000
    tree = pod(role="model-initializer", phase="Failed", state=ended(1, message=hostile))
    tree["spec"] = {"containers": [{"name": "model-initializer"}]}
    tree["status"]["containerStatuses"][0]["name"] = "model-initializer"
    one = found(tree)
    assert one.cause == "AccessDenied"
    assert len(one.message) <= 512
    assert "\x1b" not in one.message
    assert "hunter2secret" not in one.message


def test_it_counts_before_a_cascade(tmp_path: Path) -> None:
    one = found(failed(errors.UnreachableError("no answer"), tmp_path / "log"))
    other = found(pod(0, "Failed", state=ended(143)))
    assert first([other, one]) is one
    assert kept_fault({"status": {"firstFault": {"cause": "SourceUnreachable", "message": one.message}}})


@pytest.mark.parametrize(
    ("line", "cause"),
    [("NotFound: s3://bucket/none", "DataMissing"), ("Inexact: equality deletes", "InitializerFailed")],
)
def test_a_cache_that_cannot_be_filled_says_why(line: str, cause: str) -> None:
    step = "cache-initializer"
    spec = {"nodeName": "gpu-7", "containers": [{"name": step}]}
    assert found(pod(role=step, phase="Failed", state=ended(1, message=line), spec=spec)).cause == cause
