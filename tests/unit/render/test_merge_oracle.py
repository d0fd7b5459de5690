"""Merging gives to the letter what it gave when entries were looked for one by one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.render import merge_oracle
from tests.unit.render.merge_oracle import OracleError
from trainplane.render.merge import JOBSET_SPEC, JOBSET_SPEC_ADDING_TOLERATIONS, MergeError, merged

_NAMES = st.sampled_from(("a", "b", "c", "d", 1, True))
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(("", "x", "y")))
_FIELDS = ("name", "mountPath", "containerPort", "value", "valueFrom", "secret", "key")
_ENTRIES = st.dictionaries(st.sampled_from(_FIELDS), st.one_of(_NAMES, _LEAVES, st.just({"x": 1}), st.just([1, None])))
_LISTS = st.lists(_ENTRIES, max_size=5)
_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": _NAMES}, optional={"env": _LISTS, "volumeMounts": _LISTS, "ports": _LISTS, "args": _LISTS}
    ),
    max_size=4,
)
_PODS = st.fixed_dictionaries(
    {},
    optional={
        "containers": _CONTAINERS,
        "volumes": _LISTS,
        "tolerations": _LISTS,
        "schedulingGates": _LISTS,
        "nodeSelector": st.dictionaries(st.sampled_from(("a", "b", "$patch")), _LEAVES, max_size=2),
    },
)


def spec(pod: Any) -> dict[str, Any]:
    return {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}


@pytest.mark.parametrize("shape", [JOBSET_SPEC, JOBSET_SPEC_ADDING_TOLERATIONS], ids=["any", "Kueue's"])
@settings(max_examples=300)
@given(have=_PODS, patch=_PODS)
def test_merging_gives_what_it_gave(shape: Any, have: Any, patch: Any) -> None:
    before, change = spec(have), spec(patch)
    kept = copy.deepcopy((before, change))
    expected: Any
    try:
        expected = merge_oracle.merged(before, change, shape)
    except OracleError:
        expected = MergeError
    except TypeError:
        expected = TypeError
    if isinstance(expected, type):
        with pytest.raises(expected):
            merged(before, change, shape)
    else:
        found = merged(before, change, shape)
        assert found == expected
        assert repr(found) == repr(expected)
    assert (before, change) == kept
