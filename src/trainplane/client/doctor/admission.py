"""Webhooks, judged by their configuration where it can be seen, and by a TrainJob that was tried."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainplane.client.doctor.facts import ENGINES, Unseen
from trainplane.client.doctor.report import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from trainplane.client.doctor.facts import Cluster, Webhook

_SOON: Final = timedelta(days=30)
"""Before the end of an authority it is spoken of: operators renew theirs months before."""
_WANTED: Final = ("the operator", "JobSet")
"""Who must review: without them what is wrong is accepted, and fails later."""


def judge_webhooks(cluster: Cluster, now: datetime) -> Iterator[Finding]:
    """Say for each engine whether its webhooks can be reached and trusted."""
    hooks = cluster.webhooks
    if isinstance(hooks, Unseen):
        text = f"webhooks cannot be seen: {hooks.detail}"
        remedy = "the trial below passes through them all; an admin sees more"
        yield Finding("webhooks", "unknown", text, remedy)
        return
    for group, owner in ENGINES.items():
        of_group = [hook for hook in hooks if group in hook.groups]
        version = f" {cluster.engines[owner]}" if owner in cluster.engines else ""
        if of_group:
            troubles = [finding for hook in _distinct(of_group) for finding in _webhook(owner, hook, now)]
            count = "1 webhook" if len(of_group) == 1 else f"{len(of_group)} webhooks"
            good = f"{owner}{version}: {count}, reachable and trusted"
            yield from troubles or [Finding("webhooks", "ok", good)]
        elif owner in _WANTED:
            text = f"nobody reviews {group}: {owner}'s webhooks are not installed"
            remedy = f"install {owner} whole: without them what is wrong is accepted, and fails later"
            yield Finding("webhooks", "wrong", text, remedy)


def _distinct(hooks: Sequence[Webhook]) -> list[Webhook]:
    """Return one of those that differ in nothing but their name: one trouble is told once."""
    found = {(hook.configuration, hook.service, hook.authorities, hook.authority_end): hook for hook in hooks}
    return list(found.values())


def _webhook(owner: str, hook: Webhook, now: datetime) -> Iterator[Finding]:
    place = f"{owner}: webhook {hook.name} of {hook.configuration}"
    means = "everything that it reviews is refused" if hook.fails_closed else "what it reviews passes unseen"
    if isinstance(hook.endpoints, Unseen):
        if hook.endpoints.why == "missing":
            text = f"{place}: there is no Service {hook.service}: {means}"
            yield Finding("webhooks", "wrong", text, f"install {owner} again, or delete what it left behind")
        else:
            text = f"{place}: Service {hook.service} cannot be seen: {hook.endpoints.detail}"
            yield Finding("webhooks", "unknown", text, "the trial below asks it")
    elif hook.endpoints == 0:
        text = f"{place}: no pod is ready behind Service {hook.service}: {means}"
        yield Finding("webhooks", "wrong", text, "look at its pods: kubectl get pods in that namespace")
    if not hook.authorities:
        text = f"{place}: its caBundle holds no certificate: the API server trusts nobody there"
        yield Finding("webhooks", "wrong", text, f"restart {owner}, which writes it, or see that cert-manager does")
    elif hook.authority_end is not None and hook.authority_end - now < _SOON:
        level, word = ("wrong", "ended") if hook.authority_end <= now else ("warning", "ends")
        text = f"{place}: its authority {word} at {hook.authority_end:%Y-%m-%d %H:%M} UTC"
        remedy = f"see why {owner} does not renew it: its log says so"
        yield Finding("webhooks", "wrong" if level == "wrong" else "warning", text, remedy)


def judge_trial(cluster: Cluster) -> Iterator[Finding]:
    """Say what became of the TrainJob that was tried."""
    trial = cluster.trial
    if trial is None:
        text = "no TrainJob was tried: there is no runtime for it, or what it needs is missing"
        yield Finding("trial", "unknown", text, "repair what is told above, and ask again")
        return
    what = f"a TrainJob of runtime {trial.runtime}"
    if not trial.refusal:
        yield Finding("trial", "ok", f"{what} would be accepted (dry run)")
    elif trial.why == "webhook":
        text = f"{what} would not be accepted: {trial.refusal}"
        remedy = "see that the webhook's pods run, and that its caBundle is the authority of its certificate"
        yield Finding("trial", "wrong", text, remedy)
    elif trial.why == "forbidden":
        yield Finding("trial", "wrong", f"you may not create {what}", "ask an admin for a role that allows it")
    elif trial.why == "failed":
        yield Finding("trial", "unknown", f"{what} could not be tried: {trial.refusal}", "try again in a minute")
    else:
        text = f"{what} that says nothing more would be refused: {trial.refusal}"
        yield Finding("trial", "warning", text, "give your jobs what it asks for")
