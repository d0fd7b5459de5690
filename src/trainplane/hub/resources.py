"""The resources that the hub reads, on itself and on its workers: Kueue's, the trainer's, Kubernetes'.

Kueue's objects stay plain trees: their schema is theirs, and we read a few fields of each.
"""

from __future__ import annotations

from typing import Final

from trainplane.api import names
from trainplane.kube import resource
from trainplane.kube.resource import Resource

KUEUE_GROUP: Final = "kueue.x-k8s.io"
KUEUE_VERSION: Final = "v1beta2"
"""The version of Kueue's objects that we speak; served from Kueue 0.15 on."""

# --- Kueue

WORKLOADS: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "workloads", "Workload")
LOCAL_QUEUES: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "localqueues", "LocalQueue")
CLUSTER_QUEUES: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "clusterqueues", "ClusterQueue", namespaced=False)
COHORTS: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "cohorts", "Cohort", namespaced=False)
RESOURCE_FLAVORS: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "resourceflavors", "ResourceFlavor", namespaced=False)
ADMISSION_CHECKS: Final = Resource(KUEUE_GROUP, KUEUE_VERSION, "admissionchecks", "AdmissionCheck", namespaced=False)
MULTIKUEUE_CONFIGS: Final = Resource(
    KUEUE_GROUP, KUEUE_VERSION, "multikueueconfigs", "MultiKueueConfig", namespaced=False
)
MULTIKUEUE_CLUSTERS: Final = Resource(
    KUEUE_GROUP, KUEUE_VERSION, "multikueueclusters", "MultiKueueCluster", namespaced=False
)
WORKLOAD_PRIORITY_CLASSES: Final = Resource(
    KUEUE_GROUP, KUEUE_VERSION, "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False
)

# --- the trainer and JobSet

TRAINJOBS: Final = Resource(names.GROUP, names.VERSION, "trainjobs", names.TRAIN_JOB)
TRAINING_RUNTIMES: Final = Resource(names.GROUP, names.VERSION, "trainingruntimes", names.TRAINING_RUNTIME)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    names.GROUP, names.VERSION, "clustertrainingruntimes", names.CLUSTER_TRAINING_RUNTIME, namespaced=False
)
JOBSETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", names.JOBSET)

# --- Kubernetes

CONFIG_MAPS: Final = resource.CONFIG_MAPS
EVENTS: Final = resource.EVENTS
NAMESPACES: Final = resource.NAMESPACES
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
PODS: Final = resource.PODS
SECRETS: Final = resource.SECRETS
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

# --- names that Kueue gives

LABEL_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""On a Workload: the uid of the job it stands for."""
LABEL_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""On what MultiKueue made on a worker: which hub made it."""
PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""On a worker's copy of a job, a label or an annotation: its Workload, which has the same name on the hub."""
MULTIKUEUE_CONTROLLER: Final = names.MANAGED_BY_MULTIKUEUE
"""`controllerName` of an AdmissionCheck that dispatches to workers."""
KUBECONFIG_KEY: Final = "kubeconfig"
"""The key of a worker's Secret."""
