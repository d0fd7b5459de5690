"""Overrides become to the letter the patches that they became when entries were looked for one by one."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.admission.conversion import Merging

_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}
_MERGED = frozenset({"containers", "initContainers"})

_NAMES = st.sampled_from(("a", "b", "c", "", 0, 1, True, None))
_ENTRIES = st.one_of(
    st.dictionaries(
        st.sampled_from(("name", "mountPath", "env", "volumeMounts", "x")),
        st.one_of(_NAMES, st.lists(st.fixed_dictionaries({"name": _NAMES, "y": _NAMES}), max_size=2)),
    ),
    st.just("no entry"),
)
_PODS = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.dictionaries(
            st.sampled_from((*_KEYS, "nodeSelector", "tolerations")),
            st.one_of(st.lists(_ENTRIES, max_size=4), st.just({"a": {"b": 1}}), st.just({"a": {"c": 2}}), _NAMES),
        ),
        "metadata": st.just({"labels": {"a": "b"}}),
    },
)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(("node", "other")), _PODS), max_size=5))
def test_overrides_become_what_they_became(overrides: list[tuple[str, Any]]) -> None:
    kept = copy.deepcopy(overrides)
    merging, expected = Merging(), dict[str, Any]()
    for job, pod in overrides:
        merging.add(job, pod)
        expected[job] = _merged(expected.get(job, {}), pod)
    assert repr(merging.pods) == repr(expected)
    assert overrides == kept


def _merged(base: Any, patch: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    result = dict(base)
    for field, value in patch.items():
        known, key = result.get(field), _KEYS.get(field)
        if key and isinstance(known, list) and isinstance(value, list):
            result[field] = _merged_list(known, value, key, whole=field not in _MERGED)
        else:
            result[field] = _merged(known, value) if field in result else value
    return result


def _merged_list(base: list[Any], patch: list[Any], key: str, *, whole: bool) -> list[Any]:
    result = list(base)
    for entry in patch:
        name = entry.get(key) if isinstance(entry, dict) else None
        place = next(
            (i for i, one in enumerate(result) if name and isinstance(one, dict) and one.get(key) == name), None
        )
        if place is None:
            result.append(entry)
        else:
            result[place] = entry if whole else _merged(result[place], entry)
    return result
