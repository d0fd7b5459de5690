"""How many processors and devices a container has, by the names that vendors gave them."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.api.errors import QuantityError
from trainplane.api.jobset import Container
from trainplane.render.resources import accelerators, cpus, gpus


def with_limits(**amounts: Any) -> Container:
    return Container({"resources": {"limits": amounts}})


GPUS = [
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/GPU",
    "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-3g.20gb.me",
    "amd.com/gpu",
    "amd.com/cpx_nps4",
    "amd.com/spx_nps1",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
]
OTHERS = [
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    "habana.ai/gaudi",
]
NONE = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "rdma/hca_shared_devices_a",
    "vpc.amazonaws.com/efa",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "volcano.sh/gpu-memory",
    "aliyun.com/gpu-mem",
    "gpu.intel.com/memory.max",
    "gpu.intel.com/millicores",
    "gpu.intel.com/i915_monitoring",
    "amd.com/cpu_nps4",
    "example.com/mig-1g.5gb",
]


@pytest.mark.parametrize("name", GPUS)
def test_gpus_and_their_parts(name: str) -> None:
    assert gpus(with_limits(**{name: "2"})) == 2
    assert accelerators(with_limits(**{name: 2})) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_other_devices_are_no_gpus(name: str) -> None:
    assert gpus(with_limits(**{name: 4})) == 0
    assert accelerators(with_limits(**{name: 4})) == 4


@pytest.mark.parametrize("name", NONE)
def test_measures_and_the_rest_are_no_devices(name: str) -> None:
    assert gpus(with_limits(**{name: 8})) == 0
    assert accelerators(with_limits(**{name: 8})) == 0


def test_several_kinds_add_up() -> None:
    mixed = with_limits(**{"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": 1, "google.com/tpu": 4})
    assert gpus(mixed) == 3
    assert accelerators(mixed) == 7


def test_requests_count_before_limits() -> None:
    both = Container({"resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2, "cpu": 4}}})
    assert gpus(both) == 1
    assert cpus(both) == 4
    none_requested = Container({"resources": {"requests": {"nvidia.com/gpu": 0}, "limits": {"nvidia.com/gpu": 2}}})
    assert gpus(none_requested) == 2


@pytest.mark.parametrize("container", [{}, {"resources": {}}, {"resources": {"limits": None, "requests": {}}}])
def test_a_container_that_says_nothing_has_none(container: Any) -> None:
    assert (gpus(Container(container)), accelerators(Container(container)), cpus(Container(container))) == (0, 0, 0)


def test_an_amount_that_is_none_names_the_resource() -> None:
    with pytest.raises(QuantityError, match=r"google\.com/tpu"):
        accelerators(with_limits(**{"google.com/tpu": "four"}))
