"""From one tree to another as RFC 6902 operations: what a mutating webhook answers with.

The operations name only what differs, so that fields which another webhook or a newer API put there stay as they are.
Parts that both trees share are compared by identity first: `tree.put` and `tree.drop` share what they do not touch.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Operation: TypeAlias = dict[str, Any]
"""`{"op": …, "path": …, "value": …}`"""


def json_patch(before: Any, after: Any) -> list[Operation]:
    """Return operations that turn `before` into `after`; none if they are the same.

    Applied in order, they give exactly `after`, types of numbers included.
    """
    operations: list[Operation] = []
    _compare(before, after, "", operations)
    return operations


def identical(one: Any, other: Any) -> bool:
    """Return whether two trees are the same JSON. Unlike `==`, true is not 1."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return bool(one == other)


def _compare(before: Any, after: Any, path: str, operations: list[Operation]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, path, operations)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, operations)
    elif not identical(before, after):
        operations.append({"op": "replace", "path": path, "value": after})


def _compare_objects(before: dict[str, Any], after: dict[str, Any], path: str, operations: list[Operation]) -> None:
    if before is after:
        return
    operations.extend({"op": "remove", "path": f"{path}/{_escaped(key)}"} for key in before if key not in after)
    for key, value in after.items():
        place = f"{path}/{_escaped(key)}"
        if key in before:
            _compare(before[key], value, place, operations)
        else:
            operations.append({"op": "add", "path": place, "value": value})


def _compare_lists(before: list[Any], after: list[Any], path: str, operations: list[Operation]) -> None:
    """Leave the common head and tail alone; in between, change entry by entry, then take away or add the rest."""
    if before is after:
        return
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and identical(before[head], after[head]):
        head += 1
    tail = 0
    while tail < shorter - head and identical(before[-1 - tail], after[-1 - tail]):
        tail += 1
    for index in range(head, shorter - tail):
        _compare(before[index], after[index], f"{path}/{index}", operations)
    rest = shorter - tail
    operations.extend(
        {"op": "remove", "path": f"{path}/{index}"} for index in range(len(before) - tail - 1, rest - 1, -1)
    )
    operations.extend(
        {"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in range(rest, len(after) - tail)
    )


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
