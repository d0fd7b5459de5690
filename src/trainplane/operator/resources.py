"""The resources that the operator reads and writes, and the references between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.document import to_tree
from trainplane.api.meta import owner
from trainplane.kube import resource
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree

TRAIN_JOBS: Final = Resource(names.GROUP, names.VERSION, "trainjobs", names.TRAIN_JOB)
TRAINING_RUNTIMES: Final = Resource(names.GROUP, names.VERSION, "trainingruntimes", names.TRAINING_RUNTIME)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    names.GROUP, names.VERSION, "clustertrainingruntimes", names.CLUSTER_TRAINING_RUNTIME, namespaced=False
)
JOB_SETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", names.JOBSET)
CONFIG_MAPS: Final = resource.CONFIG_MAPS
SECRETS: Final = resource.SECRETS

_KNOWN: Final = {(known.api_version, known.kind): known for known in (JOB_SETS, CONFIG_MAPS, SECRETS)}


def resource_of(tree: Tree) -> Resource:
    """Return the resource of a rendered object.

    Kinds of plugins that we do not know are taken to be namespaced and spelt as kinds usually are: in small letters, in
    the plural.
    """
    api_version, kind = tree["apiVersion"], tree["kind"]
    known = _KNOWN.get((api_version, kind))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    word = kind.lower()
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith(("s", "x", "ch")) else f"{word}s"
    return Resource(group, version, plural, kind)


def owned_by(job: ObjectMeta) -> Tree:
    """Return the reference that makes an object the TrainJob's, to be deleted with it."""
    return to_tree(owner(names.API_VERSION, names.TRAIN_JOB, job))
