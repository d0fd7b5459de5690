"""Variables that a plugin sets, and that a TrainJob therefore must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from trainplane.render.plan import Plan


def judge_reserved(plan: Plan, reserved: AbstractSet[str], plugin: str) -> Iterator[Finding]:
    """Yield a finding for each variable of spec.trainer.env whose name is the plugin's."""
    for index, entry in enumerate(plan.trainer.env if plan.trainer else ()):
        if entry.get("name") in reserved:
            problem = f"{entry['name']}: set by the {plugin} plugin, leave out"
            yield Finding(f"spec.trainer.env[{index}]", problem, "Forbidden")


def judge_reserved_at_once(plan: Plan, reserved: AbstractSet[str], plugin: str) -> Iterator[Finding]:
    """Yield one finding for all variables of spec.trainer.env whose names are the plugin's, as the reference does."""
    found = sorted({str(entry.get("name")) for entry in plan.trainer.env} & reserved) if plan.trainer else []
    if found:
        yield Finding("spec.trainer.env", f"{', '.join(found)}: set by the {plugin} plugin, leave out")
