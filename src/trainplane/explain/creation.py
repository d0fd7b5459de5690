"""Why the pods of a TrainJob are not there or do not get on, by the Warnings that controllers and kubelets wrote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.explain.cleaning import clean
from trainplane.explain.phrasing import NOWHERE, Where, of_class

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

_TELLING: Final = {
    "Pod": frozenset(
        {"Failed", "FailedScheduling", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume"}
    ),
    "Job": frozenset({"FailedCreate"}),
    names.JOBSET: frozenset({"FailedCreate", "JobCreationFailed"}),
    names.TRAIN_JOB: frozenset({names.EVENT_CREATION_FAILED}),
}
"""Reasons of Warning events that say why pods do not run, by what they are about."""

_WORDS: Final = tuple(
    (cause, re.compile(pattern))
    for cause, pattern in (
        ("CertificateExpired", r"certificate has expired|certificate is not yet valid"),
        ("WebhookDown", r"failed calling webhook|failed to call webhook|conversion webhook"),
        ("QuotaExceeded", r"exceeded quota|must specify (?:limits|requests)|ResourceQuota"),
        ("AdmissionDenied", r"violates PodSecurity|denied the request|ValidatingAdmissionPolicy|is forbidden"),
        ("RuntimeMissing", r"(?:Training)?[Rr]untime\b.{0,120}not found|no runtime|there is no \w*TrainingRuntime"),
        (
            "MissingSecret",
            r"[Ss]ecrets? \"?[^\s\"]+\"? (?:not found|is not there)|in Secret |references non-existent secret",
        ),
        (
            "MissingConfigMap",
            r"[Cc]onfig[Mm]aps? \"?[^\s\"]+\"? not found|in ConfigMap |references non-existent config",
        ),
        ("ClaimPending", r"persistentvolumeclaim|PersistentVolumeClaim|volume node affinity conflict"),
        ("WrongArchitecture", r"no match for platform|exec format error|does not match the specified platform"),
        ("BadMount", r"MountVolume|mount failed|Unable to attach or mount|hostPath type check|not a directory"),
        ("WrongCommand", r"executable file not found|no such file or directory: unknown|exec: \""),
        ("ImagePull", r"[Ff]ailed to pull|[Bb]ack-off pulling|ErrImage|InvalidImageName|pull access denied"),
        ("SandboxFailed", r"[Ss]andbox|CNI|network is not ready"),
        ("Unschedulable", r"nodes are available|Insufficient |didn't match Pod's node"),
    )
)


def class_by_words(text: str) -> str | None:
    """Return the class of what a controller or kubelet says; None for what is not known."""
    return next((cause for cause, pattern in _WORDS if pattern.search(text[:4096])), None)


def explain_creation(facts: Facts, about: Collection[str] | None = None) -> Explanation | None:
    """Return what the last telling Warning says; `about` are the pods that count, None for everything."""
    for event in reversed(facts.events):
        kind, reason = trees.text(event, "involvedObject", "kind") or "", trees.text(event, "reason")
        name = trees.text(event, "involvedObject", "name") or ""
        if event.get("type") != "Warning" or reason not in _TELLING.get(kind, ()):
            continue
        if about is not None and kind == "Pod" and name not in about:
            continue
        message = clean(event.get("message"))
        cause = class_by_words(message) or "CreationFailed"
        return of_class(
            "Starting",
            cause,
            facts.name if kind != "Pod" else _step(facts, name),
            detail=f"{kind} {clean(name, 253)}: {message}",
            source=f"event {reason} of {kind} {clean(name, 253)}",
            reason=str(reason),
            where=Where(_step(facts, name), clean(name, 253)) if kind == "Pod" else NOWHERE,
        )
    return None


def _step(facts: Facts, name: str) -> str:
    pod: Tree = next((pod for pod in facts.pods if trees.text(pod, "metadata", "name") == name), {})
    return facts.step_of(pod) or clean(name, 253)
