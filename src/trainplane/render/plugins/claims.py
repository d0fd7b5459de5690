"""Claims: those that a runtime makes for each TrainJob outlive it, if the runtime says so.

What was trained lies on such a claim, and JobSet deletes it with the TrainJob; on a worker of MultiKueue, that is when
training ends. JobSet's own word for it, `retentionPolicy`, cannot be changed in a runtime that exists, so upgrades of
shipped runtimes say it by an annotation. A TrainJob whose output is sent elsewhere needs no claim to be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.plugin import Plugin
from trainplane.render.provenance import Origin

if TYPE_CHECKING:
    from trainplane.render.plan import Plan

_RETAIN: Final = {"whenDeleted": "Retain"}
_ORIGIN: Final = Origin("runtime", path=f"metadata.annotations[{names.ANNOTATION_CLAIMS}]")


class Claims(Plugin):
    """Keeps claims."""

    name = "Claims"

    def enforce(self, plan: Plan) -> None:
        """Let claims be kept whose template does not say itself what becomes of them."""
        if plan.runtime.view.metadata.annotations.get(names.ANNOTATION_CLAIMS) != names.CLAIMS_RETAIN:
            return
        if names.ANNOTATION_OUTPUT in plan.job.view.metadata.annotations:
            return
        for policy in trees.entries(plan.template.tree, "spec", "volumeClaimPolicies"):
            if not policy.get("retentionPolicy"):
                plan.writer.write(policy, "retentionPolicy", _RETAIN, _ORIGIN)
