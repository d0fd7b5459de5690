"""Every name that pods, peers and people know us by.

The contract with containers (env, mounts, ports), with JobSet, Kueue and schedulers (labels, annotations, object
names), with the SDK (conditions, reasons) and with `kubectl` (field managers). A string that another program must spell
the same way stands here and nowhere else.
"""

from __future__ import annotations

from typing import Final

# --- groups, versions, kinds

GROUP: Final = "trainer.kubeflow.org"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CONFIGURATION_API_VERSION: Final = "config.trainer.kubeflow.org/v1alpha1"

TRAIN_JOB: Final = "TrainJob"
TRAINING_RUNTIME: Final = "TrainingRuntime"
CLUSTER_TRAINING_RUNTIME: Final = "ClusterTrainingRuntime"
CONFIGURATION: Final = "Configuration"

LEGACY_GROUP: Final = "kubeflow.org"
"""A runtimeRef's group in documents older than v2.0; it means `GROUP`."""

JOBSET_API_VERSION: Final = "jobset.x-k8s.io/v1alpha2"
JOBSET_MUTABLE_POD_FIELDS: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})
"""What JobSet lets change in the pod spec of a suspended JobSet, beside the pods' labels and annotations."""
JOBSET: Final = "JobSet"
COSCHEDULING_API_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
VOLCANO_API_VERSION: Final = "scheduling.volcano.sh/v1beta1"
POD_GROUP: Final = "PodGroup"

KUEUE_GROUP: Final = "kueue.x-k8s.io"
KUEUE_VERSION: Final = "v1beta2"
"""The version of Kueue's objects that we speak; served from Kueue 0.15 on."""

HUB_GROUP: Final = "hub.trainplane.dev"
HUB_VERSION: Final = "v1alpha1"
"""The hub's view of TrainJobs: an API that the hub serves and the SDK reads."""

# --- who manages what

MANAGED_BY_TRAINER: Final = "trainer.kubeflow.org/trainjob-controller"
MANAGED_BY_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
PATCH_MANAGER_KUEUE: Final = "kueue.x-k8s.io/manager"
"""The runtimePatches entry that Kueue owns."""
PATCH_MANAGER_OLDER_FIELDS: Final = "trainer.kubeflow.org/older-fields"
"""The runtimePatches entry into which admission turns podSpecOverrides, podTemplateOverrides, labels, annotations."""

FIELD_MANAGER: Final = "trainer"
"""Who operator and hub are to the API server, in all that they write; applies every object that we render."""
STATUS_FIELD_MANAGER: Final = "trainer-status"
"""Who writes the progress that pods report, and nothing else."""

# --- labels and annotations

LABEL_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""On a replicated job's *Job template*: which part of a TrainJob runs there."""
LABEL_FRAMEWORK: Final = "trainer.kubeflow.org/framework"
"""On a runtime: the framework that it is for."""
FRAMEWORK_TENSORFLOW: Final = "tensorflow"
FRAMEWORK_PADDLE: Final = "paddle"
FRAMEWORK_CACHE: Final = "data-cache"
"""Frameworks that mlPolicy has no field for: the label chooses them, and annotations of the runtime are their settings.
Kueue knows none of them and counts such a job as one without a framework, which has the same pods."""
ANNOTATION_PORT: Final = "trainer.kubeflow.org/port"
"""On a runtime: the port on which the nodes meet, for every framework."""
ANNOTATION_MPI_IMPLEMENTATION: Final = "trainer.kubeflow.org/mpi-implementation"
"""On a runtime with mlPolicy.mpi: Intel or MPICH, where that is the MPI in the image."""
RUNTIME_KIND_ANY: Final = "any"
ANNOTATION_RUNTIME_KIND: Final = "trainplane.dev/runtime-kind"
"""On a new TrainJob, `any`: its runtimeRef is a name alone, and means the namespace's runtime of that name before the
cluster's. Admission settles the kind and takes the annotation off."""
ANNOTATION_OUTPUT: Final = "trainplane.dev/output"
"""On a TrainJob: the URI that what it trained is sent to."""
ANNOTATION_OUTPUT_SECRET: Final = "trainplane.dev/output-secret"  # noqa: S105 the name of an annotation
"""On a TrainJob: the Secret of its namespace whose keys become the sender's variables."""
ANNOTATION_RETRY_OF: Final = "trainplane.dev/retry-of"
"""On a TrainJob that is another attempt: the TrainJob that was the first."""
ANNOTATION_CACHE: Final = "trainplane.dev/cache"
"""On a TrainJob: the TrainJob of its namespace whose data cache it reads from."""
ANNOTATION_CACHE_TOPOLOGY: Final = "trainplane.dev/cache-topology"
"""On a runtime: the label of nodes within whose value a cache and its readers are near each other, beside the node."""
CLAIMS_RETAIN: Final = "Retain"
ANNOTATION_CLAIMS: Final = "trainer.kubeflow.org/claims"
"""On a runtime, `Retain`: claims that JobSet makes for a TrainJob outlive it, unless its output is sent."""
LABEL_SUPPORT: Final = "trainer.kubeflow.org/support"
"""On a runtime: `deprecated` warns whoever makes a TrainJob with it."""
SUPPORT_DEPRECATED: Final = "deprecated"
ANNOTATION_REPLACED_BY: Final = "trainplane.dev/replaced-by"
"""On a deprecated runtime: the name of the one to use instead."""
VALIDATION_DISABLED: Final = "disabled"
LABEL_VALIDATION: Final = "trainer.kubeflow.org/webhook-validation"
"""On a runtime, `disabled`: admission does not judge it, nor keeps it while TrainJobs use it."""
LABEL_MANAGED_BY: Final = "trainer.kubeflow.org/managed-by"
"""On a runtime: whose it is; `fleet sync` does not carry it to workers."""
FINALIZER_IN_USE: Final = "trainer.kubeflow.org/resource-in-use"
"""Older releases set it on runtimes; we only remove it."""

ANNOTATION_CLUSTER: Final = f"{HUB_GROUP}/cluster"
"""On pods and events in the hub's view: the worker that has them, or `hub`."""
CLUSTER_HUB: Final = "hub"

LABEL_JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
LABEL_JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
LABEL_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
LABEL_REPLICATED_JOB_REPLICAS: Final = "jobset.sigs.k8s.io/replicatedjob-replicas"
LABEL_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
LABEL_RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
LABEL_RESTARTS: Final = "trainplane.dev/restarts"
"""On a JobSet that the operator created again, and on its pods: how often the TrainJob had been restarted before."""
LABEL_JOB_NAME: Final = "batch.kubernetes.io/job-name"
LABEL_JOB_NAME_OLDER: Final = "job-name"
ANNOTATION_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
FIELD_PATH_COMPLETION_INDEX: Final = f"metadata.annotations['{ANNOTATION_COMPLETION_INDEX}']"

LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
ANNOTATION_ADMISSION_GATES: Final = "kueue.x-k8s.io/admission-gated-by"
ANNOTATION_AFTER: Final = "trainplane.dev/after"
"""On a TrainJob in a queue: the TrainJob of its namespace that must be complete before Kueue looks at this one. Also
the name of our gate in `kueue.x-k8s.io/admission-gated-by`."""
LABEL_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""On a Workload: the uid of the job it stands for."""
LABEL_MULTIKUEUE_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""On what MultiKueue made on a worker: which hub made it."""
PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""On a worker's copy of a job, a label or an annotation: its Workload, which has the same name on the hub."""
LABEL_COSCHEDULING_POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
ANNOTATION_VOLCANO_POD_GROUP: Final = "scheduling.k8s.io/group-name"
ANNOTATION_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
ANNOTATION_VOLCANO_TASK: Final = "volcano.sh/task-spec"

# --- the parts of a TrainJob: values of LABEL_ANCESTOR, names of replicated jobs and of their containers

ANCESTOR_TRAINER: Final = "trainer"
ANCESTOR_DATASET: Final = "dataset-initializer"
ANCESTOR_MODEL: Final = "model-initializer"
ANCESTORS: Final = (ANCESTOR_DATASET, ANCESTOR_MODEL, ANCESTOR_TRAINER)

ANCESTOR_CACHE: Final = "cache-initializer"
"""Serves the dataset while others train, and never ends by itself; Kueue's code knows it as any other job."""

JOB_NODE: Final = "node"
JOB_LAUNCHER: Final = "launcher"
JOB_DATASET: Final = ANCESTOR_DATASET
JOB_MODEL: Final = ANCESTOR_MODEL
CONTAINER_NODE: Final = "node"
CONTAINER_OF_ANCESTOR: Final = {
    ANCESTOR_TRAINER: CONTAINER_NODE,
    ANCESTOR_DATASET: ANCESTOR_DATASET,
    ANCESTOR_MODEL: ANCESTOR_MODEL,
    ANCESTOR_CACHE: ANCESTOR_CACHE,
}
"""The container that a job with that ancestor must have."""

VOLUME_INITIALIZER: Final = "initializer"
PATH_DATASET: Final = "/workspace/dataset"
PATH_MODEL: Final = "/workspace/model"
PATH_OUTPUT: Final = "/workspace/output"
"""Where training writes what is to be kept."""
OUTPUT: Final = "trainplane-output"
"""The container that sends what was trained, and the volume that it shares with the training if there is no other."""
OUTPUT_MANIFEST: Final = "trainplane-output.json"
"""The last file that arrives: what was sent, with sizes and digests."""
INITIALIZERS_IMAGE: Final = "ghcr.io/trainplane/initializers"
"""The image of the initializers, without its tag, which is our version."""
CACHE_IMAGE: Final = "ghcr.io/trainplane/cache"
"""The image of the data cache, in the same way."""
CLAIM_VOLUME: Final = "trainplane-claim"
"""The volume of the claim that a `pvc://` URI names."""
CLAIM_MOUNT_PATH: Final = "/pvc"
"""Below it, a claim is mounted under its own name."""
ENV_PVC_ROOT: Final = "PVC_ROOT"
TRAINER_PORT: Final = 29500

# --- conditions and reasons

SUSPENDED: Final = "Suspended"
"""Held back or stopped, by its user or its queue."""
COMPLETE: Final = "Complete"
"""Over, and well."""
FAILED: Final = "Failed"
"""Over, and not well."""
OUTPUT_SENT: Final = "OutputSent"
"""Whether what was trained arrived where the TrainJob wants it; said with its end and never before."""
JOBSET_COMPLETED: Final = "Completed"
JOBSET_FAILED: Final = "Failed"

REASON_SUSPENDED: Final = "Suspended"
"""Of Suspended, True: `spec.suspend` holds it back, no pods run."""
REASON_RESUMED: Final = "Resumed"
"""Of Suspended, False: `spec.suspend` was lifted, pods may run."""
REASON_DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
"""Of Failed: it ran for longer than `spec.activeDeadlineSeconds`."""
REASON_RUNTIME_NOT_SUPPORTED: Final = "TrainingRuntimeNotSupported"
"""Of Failed: it names a kind of runtime that nobody serves."""
REASON_EARLIER_FAILED: Final = "EarlierTrainJobFailed"
"""Of Failed: the TrainJob that it waits for failed."""
REASON_SNAPSHOT_CHANGED: Final = "RuntimeSnapshotChanged"
"""Of Failed: the ConfigMap that kept its runtime holds something else now."""
REASON_SNAPSHOT_MISSING: Final = "RuntimeSnapshotMissing"
"""Of Failed: the ConfigMap that kept its runtime is gone, and the runtime is no longer what it was."""
REASON_OVER_BUDGET: Final = "RenderingOverBudget"
"""Of Failed: it takes longer to look at than one object may hold up all others."""
REASON_OUTPUT_SENT: Final = "OutputSent"
"""Of OutputSent, True: what was trained is where it belongs."""
REASON_OUTPUT_NOT_SENT: Final = "OutputNotSent"
"""Of Failed, and of OutputSent, False: the training ended well, and its output could not be sent."""
EVENT_CREATION_FAILED: Final = "TrainJobResourcesCreationFailed"

# --- environment of containers

ENV_STORAGE_URI: Final = "STORAGE_URI"
ENV_DATASET_PATH: Final = "TRAINPLANE_DATASET_PATH"
ENV_MODEL_PATH: Final = "TRAINPLANE_MODEL_PATH"
"""Where the initializers' data is, on a backend that cannot mount it at its place; the SDK's constants say so then."""

ENV_OUTPUT_DIR: Final = "OUTPUT_DIR"
"""Where to write what is to be kept, for the training and for who sends it."""
ENV_OUTPUT_URI: Final = "OUTPUT_URI"
ENV_OUTPUT_PROVENANCE: Final = "OUTPUT_PROVENANCE"
"""What the manifest says of where its files come from, as JSON."""

ENV_CACHE_ENDPOINT: Final = "DATA_CACHE_ENDPOINT"
"""Where a training finds its data cache, HOST:PORT."""
ENV_CLUSTER_SIZE: Final = "CLUSTER_SIZE"
ENV_METADATA_LOC: Final = "METADATA_LOC"
ENV_SCHEMA_NAME: Final = "SCHEMA_NAME"
ENV_TABLE_NAME: Final = "TABLE_NAME"
ENV_IAM_ROLE: Final = "IAM_ROLE"
"""What the reference's SDK says of a data cache: its pods, head among them, and where its table is."""
CACHE_AMOUNTS: Final = {
    "HEAD_CPU": "cpu",
    "HEAD_MEM": "memory",
    "WORKER_CPU": "cpu",
    "WORKER_MEM": "memory",
}
"""What it says of the pods' resources, and which they are."""
ENV_CACHE_HEAD: Final = "HEAD_ADDRESS"
ENV_CACHE_SUBDOMAIN: Final = "CACHE_SUBDOMAIN"
"""Behind a cache pod's hostname, its address; only pods that we made into a cache have it."""
ENV_CACHE_KEY_FILE: Final = "CACHE_KEY_FILE"
ENV_CACHE_DIR: Final = "CACHE_DIR"

TORCH_NNODES: Final = "PET_NNODES"
TORCH_NPROC_PER_NODE: Final = "PET_NPROC_PER_NODE"
TORCH_NODE_RANK: Final = "PET_NODE_RANK"
TORCH_MASTER_ADDR: Final = "PET_MASTER_ADDR"
TORCH_MASTER_PORT: Final = "PET_MASTER_PORT"
TORCH_RESERVED: Final = frozenset(
    {TORCH_NNODES, TORCH_NPROC_PER_NODE, TORCH_NODE_RANK, TORCH_MASTER_ADDR, TORCH_MASTER_PORT}
)
MASTER_ADDR: Final = "MASTER_ADDR"
MASTER_PORT: Final = "MASTER_PORT"
"""Where the first node is, by torch.distributed's own names; torchrun sets them anew for its children."""
TORCH_RDZV_BACKEND: Final = "PET_RDZV_BACKEND"
TORCH_RDZV_ENDPOINT: Final = "PET_RDZV_ENDPOINT"
TORCH_RDZV_ID: Final = "PET_RDZV_ID"
TORCH_MAX_RESTARTS: Final = "PET_MAX_RESTARTS"
"""What elastic nodes meet by; a TrainJob may set these itself."""

JAX_NUM_PROCESSES: Final = "JAX_NUM_PROCESSES"
JAX_PROCESS_ID: Final = "JAX_PROCESS_ID"
JAX_COORDINATOR_ADDRESS: Final = "JAX_COORDINATOR_ADDRESS"

XGBOOST_TRACKER_URI: Final = "DMLC_TRACKER_URI"
XGBOOST_TRACKER_PORT: Final = "DMLC_TRACKER_PORT"
XGBOOST_TASK_ID: Final = "DMLC_TASK_ID"
XGBOOST_NUM_WORKER: Final = "DMLC_NUM_WORKER"
XGBOOST_RESERVED: Final = frozenset({XGBOOST_TRACKER_URI, XGBOOST_TRACKER_PORT, XGBOOST_TASK_ID, XGBOOST_NUM_WORKER})

TENSORFLOW_CONFIG: Final = "TF_CONFIG"
TENSORFLOW_TASK_INDEX: Final = "TF_TASK_INDEX"
"""The pod's place in its job; TF_CONFIG refers to it."""
TENSORFLOW_RESERVED: Final = frozenset({TENSORFLOW_CONFIG, TENSORFLOW_TASK_INDEX})

PADDLE_MASTER: Final = "PADDLE_MASTER"
PADDLE_NNODES: Final = "PADDLE_NNODES"
PADDLE_RANK: Final = "PADDLE_RANK"
PADDLE_JOB_ID: Final = "PADDLE_JOB_ID"
PADDLE_NPROC_PER_NODE: Final = "PADDLE_NPROC_PER_NODE"
PADDLE_HOST: Final = "POD_IP"
"""Where Paddle's launcher reads its own address; a name is as good to it."""
PADDLE_RESERVED: Final = frozenset(
    {PADDLE_MASTER, PADDLE_NNODES, PADDLE_RANK, PADDLE_JOB_ID, PADDLE_NPROC_PER_NODE, PADDLE_HOST}
)

OPENMPI_HOSTFILE: Final = "OMPI_MCA_orte_default_hostfile"
OPENMPI_RSH_ARGS: Final = "OMPI_MCA_plm_rsh_args"
OPENMPI_KEEP_FQDN: Final = "OMPI_MCA_orte_keep_fqdn_hostnames"
OPENMPI_DEFAULT_SLOTS: Final = "OMPI_MCA_orte_set_default_slots"
PRRTE_HOSTFILE: Final = "PRTE_MCA_prte_default_hostfile"
PRRTE_KEEP_FQDN: Final = "PRTE_MCA_prte_keep_fqdn_hostnames"
PRRTE_DO_NOT_RESOLVE: Final = "PRTE_MCA_prte_do_not_resolve"
PRRTE_SSH_ARGS: Final = "PRTE_MCA_plm_ssh_args"
"""OpenMPI 5 starts its processes with PRRTE and reads no `orte` settings."""
OPENMPI_ALLOW_ROOT: Final = (
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
)
"""Without these, mpirun refuses to start as root, whom a container is by default."""
MPI_RESERVED: Final = frozenset({OPENMPI_HOSTFILE, OPENMPI_RSH_ARGS, OPENMPI_KEEP_FQDN, OPENMPI_DEFAULT_SLOTS})

FLUX_VIEW_IMAGE: Final = "FLUX_VIEW_IMAGE"
FLUX_NETWORK_DEVICE: Final = "FLUX_NETWORK_DEVICE"
FLUX_QUEUE_POLICY: Final = "FLUX_QUEUE_POLICY"

STATUS_URL: Final = "KUBEFLOW_TRAINER_SERVER_URL"
STATUS_FILE: Final = "TRAINPLANE_STATUS_FILE"
"""Where a job on this machine, which has no server to report to, writes its progress; a variable of ours."""
STATUS_CA_CERT: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
STATUS_TOKEN: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 the name of a variable, not a secret
STALL_SECONDS: Final = "TRAINPLANE_STALL_SECONDS"
"""After how many seconds without progress a training prints where it stands."""

# --- volumes, mounts, files

MPI_SSH_VOLUME: Final = "mpi-ssh-auth"
MPI_SSH_PRIVATE_KEY: Final = "ssh-privatekey"
MPI_SSH_PUBLIC_KEY: Final = "ssh-publickey"
MPI_SSH_MOUNT_PATH: Final = "/root/.ssh"
MPI_HOSTFILE_VOLUME: Final = "mpi-hostfile"
MPI_HOSTFILE: Final = "hostfile"
MPI_HOSTFILE_MOUNT_PATH: Final = "/etc/mpi"

FLUX_INSTALLER: Final = "flux-installer"
FLUX_INSTALL_VOLUME: Final = "flux-install"
FLUX_INSTALL_MOUNT_PATH: Final = "/mnt/flux"
FLUX_CONFIG_MOUNT_PATH: Final = "/etc/flux-config"
FLUX_CURVE_VOLUME: Final = "flux-curve"
FLUX_CURVE_MOUNT_PATH: Final = "/curve"
FLUX_MEMORY_VOLUME: Final = "shared-memory"
FLUX_MEMORY_MOUNT_PATH: Final = "/dev/shm"  # noqa: S108 a mount inside the user's container
FLUX_SPACK_VOLUME: Final = "spack-install"
FLUX_SPACK_MOUNT_PATH: Final = "/opt/software"

CACHE_PORT: Final = 50051
"""Where a data cache answers clients and the kubelet: the reference's."""
CACHE_KEY: Final = "key"
"""The key of the Secret, and the file, with which a cache's nodes sign what they let clients read."""
CACHE_KEY_VOLUME: Final = "trainplane-cache-key"
CACHE_KEY_MOUNT_PATH: Final = "/var/run/secrets/trainplane/cache"
CACHE_VOLUME: Final = "trainplane-cache"
CACHE_MOUNT_PATH: Final = "/cache"

STATUS_VOLUME: Final = "kubeflow-trainer-token"
STATUS_MOUNT_PATH: Final = "/var/run/secrets/kubeflow/trainer"
STATUS_CA_CONFIG_MAP: Final = "kubeflow-trainer-status-ca"
"""The ConfigMap of a namespace with the authorities by which its pods know whom they report progress to."""
STATUS_CA_KEY: Final = "ca.crt"
"""The file, and the key of the ConfigMap, with the authorities that signed the operator's certificate."""
STATUS_TOKEN_FILE: Final = "token"  # noqa: S105 the name of a file

SNAPSHOT_KEY: Final = "runtime"
HISTORY_KEY: Final = "metrics"

CODE_NODE: Final = "node"
"""The first argument of a TrainJob that ships code: what the program does that is its command."""
CODE_DIGEST: Final = "sha256:"
"""How the second one begins: the digest of the code that the others are, in base64."""

# --- names of the objects that belong to a TrainJob


def jobset_name(train_job: str) -> str:
    """Name the JobSet; the SDK and Kueue find pods by it, so it is the TrainJob's own name."""
    return train_job


def pod_group_name(train_job: str) -> str:
    """Name the PodGroup of either gang scheduler."""
    return train_job


def snapshot_name(train_job: str) -> str:
    """Name the ConfigMap that keeps the runtime as it was at the start."""
    return f"{train_job}-runtime-snapshot"


def mpi_secret_name(train_job: str) -> str:
    """Name the Secret with the job's SSH keys."""
    return f"{train_job}-mpi-ssh-auth"


def mpi_hostfile_name(train_job: str) -> str:
    """Name the ConfigMap with the MPI hostfile."""
    return f"{train_job}-mpi-hostfile"


def code_name(train_job: str) -> str:
    """Name the ConfigMap with the code that a TrainJob ships, where it is large."""
    return f"{train_job}-trainplane-code"


def flux_entrypoint_name(train_job: str) -> str:
    """Name the ConfigMap with Flux's scripts; the volume has the same name."""
    return f"{train_job}-flux-entrypoint"


def flux_curve_name(train_job: str) -> str:
    """Name the Secret with Flux's certificate."""
    return f"{train_job}-flux-curve"


def cache_service_name(train_job: str) -> str:
    """Name the Service of a TrainJob's data cache; the reference's clients ask there."""
    return f"{train_job}-cache-service"


def cache_secret_name(train_job: str) -> str:
    """Name the Secret with the key of a TrainJob's data cache."""
    return f"{train_job}-cache"


def history_name(train_job: str) -> str:
    """Name the ConfigMap with the last points of each metric that a TrainJob reported."""
    return f"{train_job}-history"


def status_path(namespace: str, train_job: str) -> str:
    """Return where on the operator's status server a TrainJob's progress is reported."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/trainjobs/{train_job}/status"


def training_path(namespace: str, train_job: str) -> str:
    """Return where on the operator's status server a TrainJob's own pods ask how its training is doing."""
    return status_path(namespace, train_job).removesuffix("status") + "training"


def status_audience(namespace: str, train_job: str) -> str:
    """Return whom tokens are meant for that a TrainJob's progress is reported with."""
    return f"{GROUP}/{VERSION}/namespaces/{namespace}/trainjobs/{train_job}/status"


def pod_hostname(train_job: str, replicated_job: str, job_index: int, pod_index: int) -> str:
    """Return a pod's hostname; with the subdomain behind it, its address."""
    return f"{train_job}-{replicated_job}-{job_index}-{pod_index}"


def runtime_key(api_group: str, kind: str) -> str:
    """Return a runtime kind as `Kind.group`, the form in which messages name it."""
    return f"{kind}.{api_group}"
