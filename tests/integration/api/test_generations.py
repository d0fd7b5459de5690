"""Whatever any v2 release accepts, ours accepts: the real API server judges both sides."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.api import releases
from tests.integration.api.objects import Maker
from tests.size import sized

if TYPE_CHECKING:
    from tests.integration.api.conftest import Server
    from tests.suite import SuiteReport

COUNT = sized(50, full=500)

SPECIAL = {
    # A storageUri that is no URI and an empty template were accepted once and could never run: docs/conformance.md.
    "storageUri": lambda rng: rng.choice(("", "hf://org/name", "s3://bucket/path")),
    "managedBy": lambda rng: rng.choice(("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")),
    ".spec.mlPolicy.torch.numProcPerNode": lambda rng: rng.choice((1, 8, "auto", "cpu", "gpu")),
}


def spec_schema(release: str, plural: str) -> dict[str, Any]:
    """Return a release's schema of what a user writes, and in `x-always` what its rules want though it is optional."""
    schema = releases.schema(releases.crds(release)[plural])
    spec = copy.deepcopy(schema["properties"]["spec"])
    if plural != "trainjobs":
        spec["x-always"] = ["template"]
        template = spec["properties"]["template"]
        template["x-always"] = ["spec"]
        policies = template["properties"]["spec"]["properties"].get("volumeClaimPolicies")
        if policies:
            policies["items"]["x-always"] = ["templates"]
            claim = policies["items"]["properties"]["templates"]["items"]
            claim["x-always"] = ["metadata"]
            del claim["properties"]["metadata"]["properties"]["namespace"]
    return {"type": "object", "properties": {"spec": spec}, "x-always": ["spec"]}


def accepted(output: str) -> set[str]:
    """Return the names of the objects that `kubectl create --output=name` says were created."""
    return {line.partition("/")[2].split()[0] for line in output.splitlines() if line.count("/") == 1 and "." in line}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plural", ["trainjobs", "clustertrainingruntimes"])
@pytest.mark.parametrize("release", releases.ENGINES)
def test_what_a_release_accepts_ours_accepts(
    generations: Server, report: SuiteReport, release: str, plural: str
) -> None:
    crd = releases.crds(release)[plural]
    maker = Maker(spec_schema(release, plural), random.Random(f"{release} {plural}"), SPECIAL)  # noqa: S311 no secret
    kind = crd["spec"]["names"]["kind"]
    objects = [{"kind": kind, "metadata": {"name": f"object-{number}"}, **maker.make()} for number in range(COUNT)]

    theirs = generations.create(*({"apiVersion": f"{releases.group(release)}/v1alpha1", **one} for one in objects))
    ours = generations.create(*({"apiVersion": "trainer.kubeflow.org/v1alpha1", **one} for one in objects))

    good = accepted(theirs.output)
    assert len(good) >= COUNT * 0.75, f"the release refuses most of what was made from its schema:\n{theirs.output}"
    assert maker.coverage() > 0.95
    assert good <= accepted(ours.output), ours.output
    report.row(release=release, kind=kind, objects=COUNT, accepted=len(good), fields=round(maker.coverage(), 3))
