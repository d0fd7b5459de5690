"""The operator's Configuration file: what an admin may set, with every default, read strictly.

A field that we do not know is refused and named: a typo that is ignored costs an evening. An empty file, or none, means
all defaults. Values that cannot work (a port of 0, a lease shorter than its renewal) are refused at start, all at once.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import field

from trainplane.api import document, names
from trainplane.api.bounds import MOST_PODS
from trainplane.api.declaration import Envelope, always
from trainplane.api.errors import ConfigurationError, DecodeError
from trainplane.api.fieldpaths import problem_of
from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.api.objectname import is_object_name
from trainplane.api.patches import RuntimeSpecPatch

FEATURE_GATES: Final = {"TrainJobStatus": True, legacy_names.GATE_MANAGED_BY: True}
"""Every gate and its default. TrainJobStatus: pods may report progress to the operator. The reference has it off.
JobManagedBy: jobs of older kinds may say who manages them; without it they may not, and all are ours."""

LEGACY_KINDS: Final = (
    *BY_PLURAL,
    legacy_names.V2ALPHA1_TRAIN_JOBS,
    legacy_names.V2ALPHA1_TRAINING_RUNTIMES,
    legacy_names.V2ALPHA1_CLUSTER_TRAINING_RUNTIMES,
)
"""The older kinds that `legacy.kinds` may name."""
GANG_SCHEDULERS: Final = ("volcano", "scheduler-plugins")

_LONGEST_IMAGE: Final = 500
"""Characters of an image's name: as many as the one of a trainer may have."""

TLS_VERSIONS: Final = ("1.0", "1.1", "1.2", "1.3")

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Section(Envelope, frozen=True, forbid_unknown_fields=True):
    """Base of all parts of the file."""


class Webhook(Section, frozen=True):
    """Where the admission webhooks listen."""

    port: int = 9443
    host: str = ""
    """Empty: every address."""


class MetricsAuth(Section, frozen=True):
    """Who may read metrics that are served over TLS."""

    enabled: bool = True
    """Only who shows a token of the cluster's and may `get` the path /metrics by its RBAC: metrics name namespaces."""


class Metrics(Section, frozen=True):
    """Where Prometheus reads."""

    bind_address: str = ":8443"
    """`0` turns metrics off."""
    secure_serving: bool = True
    """TLS. Without it nobody is asked who they are: a token must not be sent in the clear."""
    auth: MetricsAuth = MetricsAuth()


class Health(Section, frozen=True):
    """Where the kubelet asks."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "readyz"
    liveness_endpoint_name: str = "healthz"


class LeaderElection(Section, frozen=True):
    """Which of several replicas works. Durations are Go's: 15s, 1m30s."""

    leader_elect: bool = True
    resource_lock: str = "leases"
    resource_namespace: str = ""
    """Empty: the operator's own."""
    resource_name: str = "trainer.kubeflow.org"
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"


class Controller(Section, frozen=True):
    """How many objects of a kind are worked on at once."""

    group_kind_concurrency: dict[str, int] = field(default_factory=dict)
    """`TrainJob.trainer.kubeflow.org: 5`"""


class CertManagement(Section, frozen=True):
    """Whether the operator makes and rotates its webhooks' certificate."""

    enable: bool = True
    webhook_service_name: str = "kubeflow-trainer-controller-manager"
    webhook_secret_name: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 the name of a Secret, not its content


class ClientConnection(Section, frozen=True):
    """How fast the operator may ask the API server, in requests a second."""

    qps: float = 50
    burst: int = 100


class StatusServer(Section, frozen=True):
    """Where pods report progress.

    `qps` and `burst` are read and mean nothing here: how fast reports are written follows the API server's own
    push-back, and those of one TrainJob are written every ten seconds at most.
    """

    port: int = 10443
    qps: float = 5
    burst: int = 10


class Limits(Section, frozen=True):
    """How much one object may ask for. The reference has no such section; without it, all defaults."""

    pods_per_train_job: int = MOST_PODS
    """Pods of one TrainJob, all replicated jobs together; `bounds` says why so many."""


class Output(Section, frozen=True):
    """How TrainJobs send what they trained. The reference has no such section; without it, all defaults."""

    image: str = ""
    """The image with the program that sends it, in the pods of TrainJobs that say where to. Empty: the initializers'
    image of this release; a cluster that pulls from a registry of its own names that one."""


class Cache(Section, frozen=True):
    """How TrainJobs have their data served. The reference has no such section; without it, all defaults."""

    image: str = ""
    """The image of the data cache, for steps whose runtime names the reference's, which cannot serve. Empty: that of
    this release; a cluster that pulls from a registry of its own names that one."""


class Legacy(Section, frozen=True):
    """Jobs of older kinds: those of training-operator and mpi-operator, and TrainJobs of v2alpha1.

    The reference has no such section. Without it nothing of theirs is watched, and their CRDs need not be there: a
    cluster may still have the old operator, and two that work on the same jobs would undo each other's work.
    """

    kinds: list[str] = field(default_factory=list)
    """What to serve, by the plural: `[pytorchjobs, mpijobs]`. The CRDs must be installed: until then the operator is
    not ready, and says which it waits for."""
    gang_scheduler_name: str = ""
    """Who schedules all pods of a job or none, by PodGroups that the operator makes: volcano or scheduler-plugins.
    Empty: nobody."""
    cluster_domain: str = ""
    """The suffix of names within the cluster, where pods do not search it: cluster.local. Empty: names go without."""
    init_image: str = ""
    """The image with which workers of a PyTorchJob wait for their master. Empty: the old operator's."""


class TLS(Section, frozen=True):
    """What the servers accept of TLS."""

    min_version: str = ""
    """Empty: Python's own floor."""
    cipher_suites: list[str] = field(default_factory=list)
    """Empty: Python's own choice."""
    next_protos: list[str] = field(default_factory=lambda: ["http/1.1"])


class Admission(Section, frozen=True):
    """What TrainJobs may ask for, where an admin wants less than the API has."""

    allowed_runtime_patches: list[str] | None = None
    """Fields of `trainingRuntimeSpec` that entries of `runtimePatches` may set, and all below them, as
    `template.spec.replicatedJobs[*].template.spec.template.spec.nodeSelector`. None: every field, as the reference has
    it; a TrainJob's author may then ask for all that a pod's author may. Empty: none."""


class Configuration(Section, frozen=True):
    """All that an admin may set."""

    api_version: str = always(names.CONFIGURATION_API_VERSION)
    kind: str = always(names.CONFIGURATION)
    webhook: Webhook = Webhook()
    leader_election: LeaderElection | None = None
    """None: this is the only replica."""
    metrics: Metrics = Metrics()
    health: Health = Health()
    controller: Controller = Controller()
    cert_management: CertManagement = CertManagement()
    client_connection: ClientConnection = ClientConnection()
    status_server: StatusServer = StatusServer()
    admission: Admission = Admission()
    feature_gates: dict[str, bool] = field(default_factory=dict)
    tls: TLS = TLS()
    limits: Limits = Limits()
    output: Output = Output()
    cache: Cache = Cache()
    legacy: Legacy = Legacy()

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate is on."""
        return self.feature_gates.get(gate, FEATURE_GATES[gate])


def load(text: str) -> Configuration:
    """Read the file's text, YAML or JSON.

    Raises:
        ConfigurationError: it is no YAML, repeats a key, has a field we do not know, or a value that cannot work.
    """
    import yaml  # noqa: PLC0415 only the operator reads this file; importing the types must stay light

    class Loader(yaml.SafeLoader):
        """A loader to which a repeated key is an error, as it is to Kubernetes."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    raise ConfigurationError([f"{key}: stands twice in one object: keep one"])
            return super().construct_mapping(node, deep)

    try:
        tree = yaml.load(text, Loader)  # noqa: S506 a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise ConfigurationError([f"not YAML: {error}"]) from error
    return read({} if tree is None else tree)


def read(tree: Any) -> Configuration:
    """Read a configuration from the tree of its file. Apart from an empty one it must say its version and kind."""
    try:
        configuration = document.view(tree, Configuration)
    except DecodeError as error:
        raise ConfigurationError([str(error)]) from error
    problems = [*_identity(tree), *_problems(configuration)]
    if problems:
        raise ConfigurationError(problems)
    return configuration


def seconds(duration: str) -> float:
    """Return a Go duration (`1m30s`) in seconds.

    Raises:
        ValueError: it is none.
    """
    parts = list(_DURATION.finditer(duration))
    if duration == "0":
        return 0.0
    if not parts or "".join(part.group() for part in parts) != duration:
        raise ValueError(f"{duration!r} is no duration: write a number with a unit, as in 15s or 1m30s")
    return sum(float(part["number"]) * _SECONDS[part["unit"]] for part in parts)


def _identity(tree: dict[str, Any]) -> Iterator[str]:
    for key, wanted in (("apiVersion", names.CONFIGURATION_API_VERSION), ("kind", names.CONFIGURATION)):
        if tree and tree.get(key) != wanted:
            yield f"{key}: is {tree.get(key)!r}: write {wanted}"


def _problems(configuration: Configuration) -> Iterator[str]:
    """Return all that cannot work, one line a field."""
    webhook, server, client = configuration.webhook, configuration.status_server, configuration.client_connection
    for path, port in (("webhook.port", webhook.port), ("statusServer.port", server.port)):
        if not 1 <= port <= 65535:
            yield f"{path}: is {port}: write a port from 1 to 65535"
    for path, value in (
        ("clientConnection.qps", client.qps),
        ("clientConnection.burst", client.burst),
        ("statusServer.qps", server.qps),
        ("statusServer.burst", server.burst),
    ):
        if value < 0:
            yield f"{path}: is {value}: write 0 or more"
    workers = configuration.controller.group_kind_concurrency
    for path, count in (
        *((f"controller.groupKindConcurrency[{kind}]", count) for kind, count in workers.items()),
        ("limits.podsPerTrainJob", configuration.limits.pods_per_train_job),
    ):
        if count < 1:
            yield f"{path}: is {count}: write 1 or more"
    yield from _image_problems(configuration)
    yield from _legacy_problems(configuration.legacy)
    yield from _gate_problems(configuration)
    if configuration.tls.min_version not in {"", *TLS_VERSIONS}:
        yield f"tls.minVersion: is {configuration.tls.min_version!r}: write one of {', '.join(TLS_VERSIONS)}"
    yield from _patch_problems(configuration.admission.allowed_runtime_patches or ())
    if configuration.leader_election is not None:
        yield from _lease_problems(configuration.leader_election)


def _image_problems(configuration: Configuration) -> Iterator[str]:
    images = {
        "output.image": configuration.output.image,
        "cache.image": configuration.cache.image,
        "legacy.initImage": configuration.legacy.init_image,
    }
    for path, image in images.items():
        if len(image) > _LONGEST_IMAGE or not image.isprintable() or " " in image:
            yield f"{path}: is {image[:80]!r}: write the name of an image, as registry.example.com/initializers:v1"


def _legacy_problems(legacy: Legacy) -> Iterator[str]:
    for index, kind in enumerate(legacy.kinds):
        if kind not in LEGACY_KINDS:
            yield f"legacy.kinds[{index}]: is {kind!r}: write one of {', '.join(LEGACY_KINDS)}"
    if legacy.gang_scheduler_name not in {"", *GANG_SCHEDULERS}:
        written = legacy.gang_scheduler_name
        yield f"legacy.gangSchedulerName: is {written!r}: write one of {', '.join(GANG_SCHEDULERS)}, or nothing"
    if legacy.cluster_domain and not is_object_name(legacy.cluster_domain):
        yield f"legacy.clusterDomain: is {legacy.cluster_domain[:80]!r}: write a domain, as cluster.local"


def _gate_problems(configuration: Configuration) -> Iterator[str]:
    for gate in sorted(configuration.feature_gates.keys() - FEATURE_GATES.keys()):
        yield f"featureGates.{gate}: is not known: remove it, or write one of {', '.join(FEATURE_GATES)}"


def _patch_problems(paths: Iterable[str]) -> Iterator[str]:
    """Return which paths lead to no field: an admin would take it for allowed."""
    if not paths:
        return
    from trainplane.api.crds.schema import schema_of  # noqa: PLC0415 reads Kubernetes' types, which takes a moment

    template = schema_of(RuntimeSpecPatch)["properties"]["template"]
    for index, path in enumerate(paths):
        problem = problem_of(path, {"type": "object", "properties": {"template": template}})
        if problem:
            yield f"admission.allowedRuntimePatches[{index}]: {problem}"


def _lease_problems(election: LeaderElection) -> Iterator[str]:
    times: dict[str, float] = {}
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            times[name] = seconds(duration)
        except ValueError as error:
            yield f"leaderElection.{name}: {error}"
    if len(times) < 3:
        return
    if times["leaseDuration"] <= times["renewDeadline"]:
        yield "leaderElection.leaseDuration: must be longer than renewDeadline, or a leader loses what it renews"
    if times["renewDeadline"] <= times["retryPeriod"]:
        yield "leaderElection.renewDeadline: must be longer than retryPeriod, or there is no second try"
    if times["retryPeriod"] <= 0:
        yield "leaderElection.retryPeriod: must be longer than 0"
