"""The resources that we read and write: the trainer's, JobSet's, Kueue's, Kubernetes'. One table for all rooms.

Kueue's objects stay plain trees: their schema is theirs, and we read a few fields of each.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import KINDS
from trainplane.kube import resource
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

# --- the trainer and JobSet

TRAIN_JOBS: Final = Resource(names.GROUP, names.VERSION, "trainjobs", names.TRAIN_JOB)
TRAINING_RUNTIMES: Final = Resource(names.GROUP, names.VERSION, "trainingruntimes", names.TRAINING_RUNTIME)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    names.GROUP, names.VERSION, "clustertrainingruntimes", names.CLUSTER_TRAINING_RUNTIME, namespaced=False
)
JOB_SETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", names.JOBSET)
HUB_TRAIN_JOBS: Final = Resource(names.HUB_GROUP, names.HUB_VERSION, "trainjobs", names.TRAIN_JOB)
"""The hub's view of TrainJobs, with `pods`, `events`, `log` and `queue` below each (docs/hub.md)."""

# --- the older kinds

LEGACY_JOBS: Final[Mapping[str, Resource]] = MappingProxyType(
    {kind.name: Resource(names.LEGACY_GROUP, kind.version, kind.plural, kind.name) for kind in KINDS.values()}
)
"""The older kinds of jobs by their names, each in the version that is stored."""

# --- the older TrainJob shape

_OLDER: Final = (names.LEGACY_GROUP, legacy_names.V2ALPHA1)
OLDER_TRAIN_JOBS: Final = Resource(*_OLDER, legacy_names.V2ALPHA1_TRAIN_JOBS, names.TRAIN_JOB)
OLDER_TRAINING_RUNTIMES: Final = Resource(*_OLDER, legacy_names.V2ALPHA1_TRAINING_RUNTIMES, names.TRAINING_RUNTIME)
OLDER_CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    *_OLDER, legacy_names.V2ALPHA1_CLUSTER_TRAINING_RUNTIMES, names.CLUSTER_TRAINING_RUNTIME, namespaced=False
)

# --- Kueue

_KUEUE: Final = (names.KUEUE_GROUP, names.KUEUE_VERSION)
WORKLOADS: Final = Resource(*_KUEUE, "workloads", "Workload")
LOCAL_QUEUES: Final = Resource(*_KUEUE, "localqueues", "LocalQueue")
CLUSTER_QUEUES: Final = Resource(*_KUEUE, "clusterqueues", "ClusterQueue", namespaced=False)
COHORTS: Final = Resource(*_KUEUE, "cohorts", "Cohort", namespaced=False)
RESOURCE_FLAVORS: Final = Resource(*_KUEUE, "resourceflavors", "ResourceFlavor", namespaced=False)
ADMISSION_CHECKS: Final = Resource(*_KUEUE, "admissionchecks", "AdmissionCheck", namespaced=False)
MULTIKUEUE_CONFIGS: Final = Resource(*_KUEUE, "multikueueconfigs", "MultiKueueConfig", namespaced=False)
MULTIKUEUE_CLUSTERS: Final = Resource(*_KUEUE, "multikueueclusters", "MultiKueueCluster", namespaced=False)
WORKLOAD_PRIORITY_CLASSES: Final = Resource(
    *_KUEUE, "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False
)

# --- Kubernetes

CONFIG_MAPS: Final = resource.CONFIG_MAPS
EVENTS: Final = resource.EVENTS
NAMESPACES: Final = resource.NAMESPACES
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
PODS: Final = resource.PODS
SECRETS: Final = resource.SECRETS
SERVICES: Final = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
HORIZONTAL_POD_AUTOSCALERS: Final = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

_RENDERED: Final = {(known.api_version, known.kind): known for known in (JOB_SETS, CONFIG_MAPS, SECRETS)}


def resource_of(tree: Tree) -> Resource:
    """Return the resource of a rendered object.

    Kinds of plugins that we do not know are taken to be namespaced and spelt as kinds usually are: in small letters, in
    the plural.
    """
    api_version, kind = tree["apiVersion"], tree["kind"]
    known = _RENDERED.get((api_version, kind))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    word = kind.lower()
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith(("s", "x", "ch")) else f"{word}s"
    return Resource(group, version, plural, kind)
