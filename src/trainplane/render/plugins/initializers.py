"""Initializers: what is fetched before training, and with which credentials.

A dataset is the data cache's to fetch where the runtime has one and no step that would bring it to a volume, or where
the TrainJob says so: `cache://`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from trainplane.api import names
from trainplane.api.objectname import is_object_name
from trainplane.render.cachestep import cache_ancestor, wants_cache
from trainplane.render.claims import claim_of, mount_claim
from trainplane.render.findings import Finding
from trainplane.render.plan import variable
from trainplane.render.plugin import Plugin
from trainplane.render.provenance import trainjob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.document import Document
    from trainplane.api.jobset import Container
    from trainplane.api.trainjob import InitializerSource, TrainJob
    from trainplane.render.plan import Plan, PodSet

_Part = Literal["dataset", "model"]

_ANCESTORS: Final[dict[_Part, str]] = {"dataset": names.ANCESTOR_DATASET, "model": names.ANCESTOR_MODEL}
_PATHS: Final = {"dataset": names.PATH_DATASET, "model": names.PATH_MODEL}


class Initializers(Plugin):
    """Tells the dataset and model initializers what to fetch."""

    name = "Initializers"

    def enforce(self, plan: Plan) -> None:
        """Set STORAGE_URI, the initializer's variables, claim and Secret in the container of its name."""
        for part, source, ancestor in _wanted(plan):
            at = f"spec.initializer.{part}"
            for pods in plan.pod_sets:
                container = pods.container(_container(ancestor)) if pods.ancestor == ancestor else None
                if container is None:
                    continue
                if source.storage_uri is not None:
                    uri = {"name": names.ENV_STORAGE_URI, "value": source.storage_uri}
                    container.set_env(uri, origin=trainjob(f"{at}.storageUri"))
                container.set_env(*map(variable, source.env), origin=trainjob(f"{at}.env"))
                claim = claim_of(source.storage_uri or "")
                if claim is not None and is_object_name(claim):
                    mount_claim(pods, container, claim, read_only=True, origin=trainjob(f"{at}.storageUri"))
                if source.secret_ref is not None:
                    secret = {"secretRef": {"name": source.secret_ref.get("name", "")}}
                    container.add_env_from(secret, origin=trainjob(f"{at}.secretRef"))

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Require a replicated job and container for each initializer; warn if what it fetches would be lost."""
        served = cache_ancestor(plan)
        for part, source, ancestor in _wanted(plan):
            claim = claim_of(source.storage_uri or "")
            if old is None and claim is not None and not is_object_name(claim):
                yield Finding(
                    f"spec.initializer.{part}.storageUri",
                    f"{claim[:63]!r} cannot be the name of a claim: write pvc://CLAIM/path with the name of a "
                    "PersistentVolumeClaim of this namespace",
                )
            pods = _job_for(plan.pod_sets, ancestor)
            if pods is None:
                yield Finding(
                    "spec.runtimeRef",
                    f"the runtime has no replicated job {ancestor}, which spec.initializer.{part} needs: "
                    f"choose a runtime that has one, or leave spec.initializer.{part} out",
                )
                continue
            container = pods.container(_container(ancestor))
            if container is None:
                yield Finding(
                    "spec.runtimeRef",
                    f"the runtime's job {pods.name} has no container {_container(ancestor)}, which "
                    f"spec.initializer.{part} needs",
                )
            elif pods.ancestor != ancestor:
                yield (
                    f"spec.initializer.{part} has no effect: the runtime's job {pods.name} lacks the label "
                    f"{names.LABEL_ANCESTOR}={ancestor} on its Job template"
                )
            elif ancestor != served and not _shares(container, _PATHS[part]):
                yield (
                    f"what spec.initializer.{part} fetches will be lost: container {ancestor} of the runtime mounts no "
                    f"volume at {_PATHS[part]}, so training cannot see it"
                )


def _wanted(plan: Plan) -> Iterator[tuple[_Part, InitializerSource, str]]:
    initializer = plan.job.view.spec.initializer
    if initializer is None:
        return
    for part, ancestor in _ANCESTORS.items():
        source: InitializerSource | None = getattr(initializer, part)
        if source is not None:
            yield part, source, (_dataset_step(plan) if part == "dataset" else ancestor)


def _dataset_step(plan: Plan) -> str:
    """Return the step that brings the dataset."""
    served = cache_ancestor(plan)
    fetched = any(pods.ancestor == names.ANCESTOR_DATASET for pods in plan.pod_sets)
    return served if served and (wants_cache(plan) or not fetched) else names.ANCESTOR_DATASET


def _container(ancestor: str) -> str:
    return names.CONTAINER_OF_ANCESTOR[ancestor]


def _job_for(pod_sets: Iterable[PodSet], ancestor: str) -> PodSet | None:
    """Return the job that is labelled for an initializer, else the one that is merely named so."""
    labelled = [pods for pods in pod_sets if pods.ancestor == ancestor]
    return next(iter([*labelled, *(pods for pods in pod_sets if pods.name == ancestor)]), None)


def _shares(container: Container, path: str) -> bool:
    """Return whether a container writes `path` to a volume."""
    mounts = container.tree.get("volumeMounts") or ()
    return any(
        mount.get("name") == names.VOLUME_INITIALIZER or f"{path}/".startswith(mount["mountPath"].rstrip("/") + "/")
        for mount in mounts
    )
