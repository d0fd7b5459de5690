"""The catalogue: every class of trouble that is told apart, what it means and what to do.

`docs/troubleshooting.md` is made from it. A class is not a message: messages come from pods and are quoted, the words
here are ours. `part` is the part that a class has when several pods are in trouble at once, which is what tells the
first fault from the cascade behind it.
"""

from __future__ import annotations

from typing import Final

from trainplane.explain.trouble import TroubleClass

_CODE: Final = "Errors of the training itself"
_RESOURCES: Final = "Memory, disk and devices"
_PEERS: Final = "Nodes that train together"
_DATA: Final = "Data, network and credentials"
_FETCH: Final = "Datasets and models that are fetched before"
_MACHINE: Final = "Machines and the cluster"
_START: Final = "Pods that do not start"
_QUEUE: Final = "Held, queued and dispatched"
_PACE: Final = "Slow, silent or stopped by a limit"

_TABLE: Final = (
    # -- the training itself
    TroubleClass(
        "PythonError",
        "raised a Python error",
        "mend the code: the last line names the error, the lines above it the place",
        _CODE,
    ),
    TroubleClass(
        "MissingModule",
        "could not import a module",
        "install it: packages_to_install of the trainer, or an image that has it",
        _CODE,
    ),
    TroubleClass(
        "WrongArguments",
        "was called with wrong arguments",
        "correct spec.trainer.args: the program says which it takes",
        _CODE,
    ),
    TroubleClass(
        "WrongCommand",
        "could not be started: its command was not found, or is no program",
        "correct spec.trainer.command, or take an image that has the program",
        _CODE,
    ),
    TroubleClass(
        "WrongArchitecture",
        "could not be started: the image is for another kind of processor",
        "build the image for the nodes' architecture, or choose nodes by kubernetes.io/arch",
        _CODE,
    ),
    TroubleClass(
        "FileMissing",
        "did not find a file",
        "check the path, the mounted volumes, and that an initializer fetched it",
        _CODE,
    ),
    TroubleClass(
        "PermissionDenied",
        "was not allowed to read, write or run a file",
        "check the volume's rights and the pod's securityContext (runAsUser, fsGroup, readOnlyRootFilesystem)",
        _CODE,
    ),
    TroubleClass(
        "NotANumber",
        "stopped because its loss was not a number",
        "lower the learning rate, clip gradients, check the data; go on from an earlier checkpoint",
        _CODE,
    ),
    TroubleClass(
        "NativeCrash",
        "crashed in native code",
        "update or align the native libraries (torch, CUDA, NCCL, numpy); PYTHONFAULTHANDLER=1 shows where",
        _CODE,
        certainty="likely",
    ),
    TroubleClass(
        "ExitCode",
        "ended with an error code and said nothing that explains it",
        "read the whole log of this step; let the program print why it ends",
        _CODE,
        part="unclear",
        certainty="likely",
    ),
    # -- memory, disk, devices
    TroubleClass(
        "OutOfMemory",
        "used more memory than it may",
        "raise resourcesPerNode.limits.memory, or use less: smaller batches, fewer DataLoader workers",
        _RESOURCES,
    ),
    TroubleClass(
        "SharedMemory",
        "ran out of shared memory",
        "mount an emptyDir with medium Memory at /dev/shm, or use fewer DataLoader workers",
        _RESOURCES,
    ),
    TroubleClass(
        "DiskFull",
        "found no space left on a disk",
        "write to a volume that is large enough, remove old checkpoints, or raise ephemeral-storage",
        _RESOURCES,
    ),
    TroubleClass(
        "CudaOutOfMemory",
        "ran out of GPU memory",
        "smaller batches, gradient checkpointing, a sharded optimizer (FSDP, ZeRO), or larger GPUs",
        _RESOURCES,
    ),
    TroubleClass(
        "CudaError",
        "got an error from CUDA",
        "run with CUDA_LAUNCH_BLOCKING=1 to see the line: an index out of range is the usual cause",
        _RESOURCES,
    ),
    TroubleClass(
        "GpuFault",
        "lost its GPU to a hardware fault (Xid, ECC)",
        "drain the node and have the GPU reset or replaced; start again elsewhere",
        _RESOURCES,
        heals=True,
    ),
    TroubleClass(
        "GpuMissing",
        "found no GPU that it can use",
        "ask for one in resourcesPerNode; check the node's driver against the image's CUDA version",
        _RESOURCES,
    ),
    # -- peers
    TroubleClass(
        "PeerLost",
        "lost its connection to another node of the training",
        "look at the node that ended first: this one only noticed",
        _PEERS,
        heals=True,
        part="consequence",
        certainty="likely",
    ),
    TroubleClass(
        "CollectiveTimeout",
        "waited in vain for other nodes in a collective operation (NCCL or gloo timeout)",
        "find the rank that stands still or skips a collective: all ranks must call the same ones, in the same order",
        _PEERS,
        part="unclear",
        certainty="likely",
    ),
    TroubleClass(
        "RendezvousTimeout",
        "waited in vain for the other nodes to join",
        "check that all nodes started, that numNodes and the world size agree, and that pods may reach each other",
        _PEERS,
        part="unclear",
        heals=True,
        certainty="likely",
    ),
    TroubleClass(
        "WrongWorldSize",
        "was started with a rank or world size that does not fit the others",
        "leave WORLD_SIZE, RANK and numProcPerNode to the runtime, or make them agree on all nodes",
        _PEERS,
    ),
    TroubleClass(
        "NcclError",
        "got an error from NCCL",
        "run with NCCL_DEBUG=INFO; check NCCL_SOCKET_IFNAME, the fabric and that all nodes have the same NCCL",
        _PEERS,
        heals=True,
        part="unclear",
        certainty="likely",
    ),
    TroubleClass(
        "PortTaken",
        "could not listen: its port is taken",
        "with hostNetwork give the runtime another trainer.kubeflow.org/port; otherwise let only one process listen",
        _PEERS,
    ),
    # -- data, network, credentials
    TroubleClass(
        "NameNotResolved",
        "could not resolve a name",
        "check the name, the cluster's DNS and the pods' network policy",
        _DATA,
        heals=True,
        certainty="likely",
    ),
    TroubleClass(
        "NetworkError",
        "could not reach a server",
        "check that the server runs and that the pods may reach it",
        _DATA,
        heals=True,
        part="unclear",
        certainty="likely",
    ),
    TroubleClass(
        "AccessDenied",
        "was denied access to data or a model",
        "check the token or key in the Secret, and what it may read",
        _DATA,
    ),
    TroubleClass(
        "DataMissing",
        "asked for a dataset, a model or an object that is not there",
        "check its name and revision; a private one looks missing without a token",
        _DATA,
    ),
    TroubleClass(
        "OutputNotSent",
        "was trained, and its output could not be sent to where the TrainJob wants it",
        "do what the message says, then submit it again; checkpoints that were sent before are there",
        _DATA,
    ),
    TroubleClass(
        "CertificateExpired",
        "met a certificate that has expired",
        "renew the server's certificate; check the node's clock",
        _DATA,
    ),
    TroubleClass(
        "CertificateUntrusted",
        "met a certificate that it does not trust",
        "mount your CA and set SSL_CERT_FILE or REQUESTS_CA_BUNDLE",
        _DATA,
    ),
    # -- what initializers fetch
    TroubleClass(
        "InitializerFailed",
        "failed to fetch the dataset or the model",
        "check storageUri and the credentials in secretRef",
        _FETCH,
    ),
    TroubleClass(
        "SourceInvalid",
        "was told to fetch from where nothing can be: a URI or a variable means nothing",
        "correct spec.initializer: storageUri and env, as docs/data.md has them",
        _FETCH,
    ),
    TroubleClass(
        "CredentialsExpired",
        "was denied access because its credentials have expired",
        "put a fresh token into the Secret that spec.initializer.*.secretRef names, and run the job again",
        _FETCH,
    ),
    TroubleClass(
        "VolumeTooSmall",
        "found too little room on its volume for what it was to fetch",
        "ask for a larger claim, or leave files out with IGNORE_PATTERNS",
        _FETCH,
    ),
    TroubleClass(
        "VolumeOccupied",
        "found what another job fetched in the place of its own",
        "use another claim or sub-path, or empty the folder when nobody trains from it",
        _FETCH,
    ),
    TroubleClass(
        "VolumeRefused",
        "could not write to its volume",
        "check the claim's access mode, owner and state: our image writes as user 65532, so fsGroup must be that",
        _FETCH,
        heals=True,
    ),
    TroubleClass(
        "DataCorrupt",
        "got other bytes than the source says it has, twice",
        "upload the file again, or its checksum; if it persists, something between changes bytes",
        _FETCH,
    ),
    TroubleClass(
        "SourceHostile",
        "was offered names or sizes that no honest source has",
        "do not train from this source before somebody has looked at it",
        _FETCH,
    ),
    TroubleClass(
        "SourceChanged",
        "found the source changed while it was read",
        "run again when nobody writes there, or name a fixed revision",
        _FETCH,
        heals=True,
    ),
    TroubleClass(
        "SourceThrottled",
        "was asked by the source to slow down, for too long",
        "run again later, lower PARALLEL, or raise RETRY_SECONDS, in spec.initializer.*.env",
        _FETCH,
        heals=True,
    ),
    TroubleClass(
        "SourceUnreachable",
        "could not reach the source, or was cut off again and again, for too long",
        "check its name, the network policy and the proxy from this namespace; what arrived is kept for the next run",
        _FETCH,
        heals=True,
    ),
    # -- machines
    TroubleClass(
        "NodeLost",
        "was lost with its node",
        "it is started again elsewhere; look at the node: kubectl describe node",
        _MACHINE,
        heals=True,
        disrupts=True,
    ),
    TroubleClass(
        "NodeShutdown",
        "was stopped because its node shut down",
        "it is started again elsewhere; use checkpoints where nodes come and go",
        _MACHINE,
        heals=True,
        disrupts=True,
    ),
    TroubleClass(
        "Evicted",
        "was evicted: its node ran short of memory, disk or processes",
        "ask for what it needs in resourcesPerNode, ephemeral-storage included",
        _MACHINE,
        heals=True,
    ),
    TroubleClass(
        "Drained",
        "was evicted by whoever drained its node",
        "it is started again elsewhere; a PodDisruptionBudget protects long trainings",
        _MACHINE,
        heals=True,
        disrupts=True,
    ),
    TroubleClass(
        "Preempted",
        "had to give way to a pod of higher priority",
        "it is started again when there is room; give it a priority class if it must not wait",
        _MACHINE,
        heals=True,
        disrupts=True,
    ),
    TroubleClass(
        "PodDeleted",
        "was deleted while it ran",
        "the TrainJob restarts; to find who deletes pods, see the audit log of the API server",
        _MACHINE,
        heals=True,
        disrupts=True,
    ),
    TroubleClass(
        "RefusedByNode",
        "was refused by the node that it was bound to",
        "it is placed anew; if it comes back, compare the node's allocatable resources with the pod's",
        _MACHINE,
        heals=True,
    ),
    TroubleClass(
        "Killed",
        "was killed (SIGKILL) from outside",
        "look at the node's memory and at who deletes pods; the first fault may be elsewhere",
        _MACHINE,
        heals=True,
        part="unclear",
        certainty="likely",
    ),
    TroubleClass(
        "Terminated",
        "was told to stop (SIGTERM)",
        "look for who stopped it: a deleted pod, a drained node, or a fault of another node",
        _MACHINE,
        heals=True,
        part="stopped",
        certainty="likely",
    ),
    # -- pods that do not start
    TroubleClass(
        "ImagePull",
        "waits for an image that cannot be pulled",
        "check the image's name and tag, and the pull secret",
        _START,
    ),
    TroubleClass(
        "MissingSecret",
        "waits for a Secret or a key of it that is not there",
        "create it in the TrainJob's namespace, with that key",
        _START,
    ),
    TroubleClass(
        "MissingConfigMap",
        "waits for a ConfigMap or a key of it that is not there",
        "create it in the TrainJob's namespace, with that key",
        _START,
    ),
    TroubleClass(
        "BadMount",
        "waits for a volume that cannot be mounted",
        "check the volume's name, type, path and server",
        _START,
    ),
    TroubleClass(
        "ClaimPending",
        "waits for a PersistentVolumeClaim",
        "create the claim, or give it a storage class that can provide it",
        _START,
    ),
    TroubleClass(
        "Unschedulable",
        "waits for room: no node can take it",
        "ask for less, wait for others to end, or add nodes that fit its requests, selectors and tolerations",
        _START,
    ),
    TroubleClass(
        "SchedulingGated",
        "is held back from the scheduler by a gate",
        "whoever set the gate must lift it: with Kueue, admission does",
        _START,
    ),
    TroubleClass(
        "SandboxFailed",
        "waits for its pod's network or sandbox",
        "look at the node's CNI and container runtime: kubectl describe pod",
        _START,
        certainty="likely",
    ),
    TroubleClass(
        "QuotaExceeded",
        "cannot be created: the namespace's ResourceQuota is used up",
        "ask for less, end other jobs, or have the quota raised",
        _START,
    ),
    TroubleClass(
        "AdmissionDenied",
        "cannot be created: an admission rule of the cluster denies it",
        "do what the rule asks for; Pod Security and policy engines name the field",
        _START,
    ),
    TroubleClass(
        "WebhookDown",
        "cannot be created: a webhook of the cluster does not answer",
        "bring that webhook's service back: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        _START,
    ),
    TroubleClass(
        "RuntimeMissing",
        "has no runtime of that name",
        "correct spec.runtimeRef, or install the runtime: kubectl get clustertrainingruntimes",
        _START,
    ),
    TroubleClass(
        "RuntimeDiffers",
        "was refused because the runtime is not what the TrainJob began with",
        "create the TrainJob again; on a fleet: trainplane fleet sync",
        _START,
    ),
    TroubleClass(
        "CreationFailed",
        "could not have its objects created",
        "do what the message says; the operator goes on trying",
        _START,
        certainty="likely",
    ),
    # -- held
    TroubleClass("Suspended", "is held by spec.suspend", "resume it when it may run", _QUEUE, heals=True),
    TroubleClass(
        "Queued",
        "waits in its queue for quota",
        "wait, ask for less, or look at who uses the quota: docs/queued.md",
        _QUEUE,
        heals=True,
    ),
    TroubleClass(
        "QueueMissing",
        "waits in a queue that is not there or does not admit",
        "correct the label kueue.x-k8s.io/queue-name, or have the queue set up",
        _QUEUE,
    ),
    TroubleClass(
        "PreemptedByKueue",
        "was preempted by Kueue and waits in its queue again",
        "it starts again by itself; a higher priority class keeps it running",
        _QUEUE,
        heals=True,
    ),
    TroubleClass(
        "WorkerLost",
        "was on a worker cluster that the hub cannot reach",
        "wait for Kueue to dispatch it again, or look at the worker: trainplane fleet check",
        _QUEUE,
        heals=True,
    ),
    # -- pace
    TroubleClass("DeadlineExceeded", "ran longer than it may", "raise activeDeadlineSeconds, or train less", _PACE),
    TroubleClass(
        "SlowStart",
        "has not started yet",
        "look at the stage that it is in: pulling images and waiting for nodes take longest",
        _PACE,
        heals=True,
        certainty="likely",
    ),
    TroubleClass(
        "Hang",
        "stands still: no output for much longer than it used to take",
        "see where it stands: who calls trainplane.progress has it in the log, else py-spy dump --pid 1; "
        "a deadlock, a lost data source or a skipped collective",
        _PACE,
        part="unclear",
        certainty="likely",
    ),
    TroubleClass(
        "Straggler",
        "is behind the other nodes",
        "compare its node with the others (clocks, throttling, network, disk) and move it if it stays behind",
        _PACE,
        heals=True,
        certainty="likely",
    ),
    TroubleClass(
        "Unknown",
        "is in trouble for a reason that nothing here shows",
        "look at the logs of all steps; trainplane bundle writes all that is known into a file",
        _PACE,
        part="unclear",
        certainty="unknown",
    ),
)

CLASSES: Final = {one.name: one for one in _TABLE}
"""By name, in the order of the page."""
UNKNOWN: Final = CLASSES["Unknown"]


def class_of(name: str) -> TroubleClass:
    """Return a class; the unknown one for a name that a newer or older release wrote."""
    return CLASSES.get(name, UNKNOWN)
