"""Parts of pods that Hypothesis draws: containers and fields from the schema, amounts, variables, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from tests.conformance.documents import container
from tests.conformance.schema import QUANTITIES, WORDS, below, crd, some

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.cases import Tree

    Draw = Callable[[st.SearchStrategy[Any]], Any]

TEMPLATE: Final = ("template", "spec", "replicatedJobs", "template", "spec", "template")
POD: Final = below(crd("trainingruntimes"), *TEMPLATE, "spec")
ENV: Final = st.lists(
    st.builds(lambda name, value: {"name": name, "value": value}, st.sampled_from("ABCD"), st.sampled_from(WORDS)),
    min_size=1,
    max_size=3,
    unique_by=lambda entry: entry["name"],
)
_AMOUNTS = st.sampled_from(QUANTITIES)
_DEVICES = st.sampled_from(("1", 2, "4000m"))
RESOURCES: Final = st.fixed_dictionaries(
    # Names of their own, since a pod may not request more than its limit of one resource.
    {
        "requests": st.fixed_dictionaries(
            {"cpu": st.sampled_from(("1", 3, "500m", "2500m"))}, optional={"memory": _AMOUNTS}
        )
    },
    # Devices are whole: a pod may not have the half of one.
    optional={"limits": st.dictionaries(st.sampled_from(("nvidia.com/gpu", "example.com/nic")), _DEVICES, min_size=1)},
)
_LABELS = st.dictionaries(st.sampled_from(("a", "example.com/b")), st.sampled_from(WORDS), min_size=1)
METADATA: Final = st.fixed_dictionaries({"labels": _LABELS}, optional={"annotations": _LABELS})


@st.composite
def _containers(draw: Draw, names: list[str]) -> list[Tree]:
    schema = below(POD, "containers")["items"]
    taken = ("name", "image", "env", "resources")
    found = []
    for name in names:
        fields = draw(some(schema, without=taken))
        fields |= draw(st.fixed_dictionaries({}, optional={"env": ENV, "resources": RESOURCES}))
        found.append(container(name, **fields))
    return found


@st.composite
def pods(draw: Draw) -> Tree:
    """Return the spec of a pod that has a container `node`, perhaps one beside it and one before it."""
    beside = draw(st.lists(st.sampled_from(("side", "log")), unique=True, max_size=1))
    init = draw(st.lists(st.just("init"), max_size=1))
    pod: Tree = draw(some(POD, most=3, without=("containers", "initContainers", "ephemeralContainers")))
    pod["containers"] = draw(_containers(["node", *beside]))
    if init:
        pod["initContainers"] = draw(_containers(init))
    return pod
