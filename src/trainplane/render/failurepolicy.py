"""A failure policy that JobSet refuses: reasons for which no Job fails, and names that rules cannot have.

By the webhook of JobSet 0.12. Which actions it takes depends on its feature gates, which nobody knows here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainplane.api.jobset import JobSetTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.references import Fault

_REASONS: Final = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_NAME: Final = re.compile(r"(?=.{1,128}$)[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def wrong_rules(template: Tree) -> Iterator[Fault]:
    """Yield a fault for each part of a rule for which JobSet refuses the whole."""
    taken: set[str] = set()
    for index, rule in enumerate(JobSetTemplate(template).get("spec", "failurePolicy", "rules") or ()):
        at = ("spec", "failurePolicy", "rules", index)
        name = rule.get("name") or f"failurePolicyRule{index}"  # what JobSet calls a rule without a name
        if not _NAME.fullmatch(name):
            yield (*at, "name"), f"{name!r} is no name: write up to 128 letters, digits, _, comma and :, a letter first"
        elif name in taken:
            yield (*at, "name"), f"{name} is there twice"
        taken.add(name)
        for place, reason in enumerate(rule.get("onJobFailureReasons") or ()):
            if reason not in _REASONS:
                problem = f"no Job fails for the reason {reason!r}: write {', '.join(_REASONS[:-1])} or {_REASONS[-1]}"
                yield (*at, "onJobFailureReasons", place), problem
