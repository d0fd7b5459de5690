"""The same failures where the reference's controller is, told by others: `peers` has the rule.

They are asked when a failure is there, and again when the pods of those that are over are gone.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from lab import accounts
from tests.explain.conftest import USER
from tests.explain.failures import FAILURES, NAMESPACE, WITH_TORCH
from tests.explain.making import explained, make, remove_pods, stage_of
from tests.explain.peers import PEERS, by_sdk, described, is_named, statuses
from tests.sdk.official.sdk import Sdk
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.explain.peers import Pieces
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport

FEW = ("traceback", "exit-code", "memory", "image", "unschedulable", "quota", "suspended")
COMPARED = sized([one for one in FAILURES if one.name in FEW], full=[*FAILURES, *WITH_TORCH])
UNSEEN = {"traceback-gone", "drained"}
LATER = sized(0.0, full=60.0)
"""Seconds after which they are asked again when pods are gone."""


@pytest.mark.timeout(900)
async def test_what_others_say(reference_stages: dict[str, Stage], report: SuiteReport) -> None:
    stages = reference_stages
    await asyncio.gather(*(make(stage_of(stages, one), one) for one in COMPARED))
    ours = await asyncio.gather(*(explained(stage_of(stages, one), one) for one in COMPARED))
    kubeconfig = accounts.kubeconfig(stages[NAMESPACE].cluster, NAMESPACE, USER)
    with Sdk(kubeconfig, NAMESPACE) as sdk:
        first = await asyncio.to_thread(_ask, stages, sdk)
        await remove_pods(stages[NAMESPACE], COMPARED)
        await asyncio.sleep(LATER)
        later = await asyncio.to_thread(_ask, stages, sdk)
    for failure, explanation in zip(COMPARED, ours, strict=True):
        report.row(
            compared=failure.name,
            explain_alone=is_named(failure, [str(explanation)]),
            **{peer: is_named(failure, first[peer].get(failure.name, ())) for peer in PEERS},
            **{f"{peer}_when_gone": is_named(failure, later[peer].get(failure.name, ())) for peer in PEERS},
            status=_conditions(later["reference"].get(failure.name, ())),
        )
    rows = [row for row in report.rows if "compared" in row]
    report.figure("compared", len(rows))
    report.figure("explain_alone_named", sum(row["explain_alone"] for row in rows))
    for peer in PEERS:
        report.figure(f"{peer}_named", sum(row[f"{peer}_when_gone"] for row in rows))
        report.figure(f"{peer}_named_with_pods", sum(row[peer] for row in rows))
    # Our command names them where our operator is not, too, but keeps nothing of pods that are gone when it looks.
    assert {row["compared"] for row in rows if not row["explain_alone"]} <= UNSEEN, rows
    # They are heard rightly: of a failure that each of them knows, it is known.
    assert [row["kubectl"] for row in rows if row["compared"] in {"image", "unschedulable"}] == [True, True]
    assert [row["official_sdk"] for row in rows if row["compared"] == "traceback"] == [True]
    assert any("Failed" in row["status"] for row in rows)


def _ask(stages: dict[str, Stage], sdk: Sdk) -> dict[str, dict[str, Pieces]]:
    """Return what each says, by failure."""
    said: dict[str, dict[str, Pieces]] = {peer: {} for peer in PEERS}
    for namespace, stage in stages.items():
        here = [one for one in COMPARED if (one.namespace or NAMESPACE) == namespace]
        if not here:
            continue
        kubeconfig = accounts.kubeconfig(stage.cluster, NAMESPACE, USER)
        said["kubectl"] |= described(stage.cluster, kubeconfig, namespace, here)
        said["reference"] |= statuses(stage.cluster, namespace)
        said["official_sdk"] |= by_sdk(sdk, namespace, here)
    return said


def _conditions(pieces: Iterable[str]) -> str:
    """Return what the conditions of a status say that hold."""
    found = [one for piece in pieces for one in json.loads(piece).get("conditions") or ()]
    return "; ".join(f"{one['type']}: {one.get('message')}" for one in found if one["status"] == "True")
