"""What an admin decides: the Configuration file (`api.configuration`), flags, and what follows from both.

The file and the flags are the reference's, so its Deployment starts ours unchanged; a few of training-operator's are
read beside them. Three things are read and mean less here: `clientConnection.qps` and `burst` (how many requests are in
flight follows the API server's own push-back, `kube.limiter`), `tls.nextProtos` (HTTP/1.1 is all we serve) and the zap
flags other than the level and the encoder.
"""

from __future__ import annotations

import argparse
import logging
import os
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import configuration, names
from trainplane.api.configuration import Configuration
from trainplane.api.errors import ConfigurationError
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.kube.config import SERVICE_ACCOUNT
from trainplane.kube.election import LeaseSettings
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.loglines import level_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_NAMESPACE: Final = "kubeflow-system"
"""The operator's namespace where neither a pod's mount nor a flag says: the reference's."""

DEFAULT_WORKERS: Final = {names.TRAIN_JOB: 32, names.TRAINING_RUNTIME: 1, names.CLUSTER_TRAINING_RUNTIME: 1}
"""Keys of a kind worked on at once where the file does not say. A worker waits for the API server most of its time, and
32 keep a small one busy without queueing in front of it."""


LEGACY_WORKERS: Final = 8
"""The same of each older kind of job."""

INITIALIZERS_IMAGE: Final = names.INITIALIZERS_IMAGE
"""The image of the initializers, in which is also what sends output."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the composition root needs to know. Made by `parse`; tests make their own."""

    configuration: Configuration = field(default_factory=Configuration)
    """The file; all defaults without one."""
    kubeconfig: str | None = None
    """Path of a kubeconfig; None finds the cluster as kubectl does, in a pod its own."""
    namespace: str = DEFAULT_NAMESPACE
    """Where the operator runs: its Lease, its certificates' Secret, its Service."""
    watch_namespace: str | None = None
    """The one namespace whose TrainJobs it works on, for an operator without rights elsewhere; it then knows no
    ClusterTrainingRuntimes. None: all namespaces."""
    certificates: Path = field(default_factory=lambda: _certificate_folder(os.environ))
    """Folder with tls.crt and tls.key where certManagement is off; the reference's own place, moved by TMPDIR."""
    shutdown_delay: float = 5.0
    """Seconds that webhooks are served after the end was asked for, as `--shutdown-delay-duration` of an API server:
    until every node has taken this replica out of the Service. Endpoints of a pod that ends go within a second or two;
    5 leaves room and stays well inside a pod's 30."""
    log_level: int = logging.INFO
    """`error`, `info`, `debug`, or a number: 1 and more mean debug."""
    log_format: str = "json"
    """`json`, or `console` for people."""

    def workers(self, kind: str, group: str = names.GROUP) -> int:
        """Return how many keys of one of our kinds are worked on at once."""
        configured = self.configuration.controller.group_kind_concurrency
        return configured.get(f"{kind}.{group}", DEFAULT_WORKERS.get(kind, LEGACY_WORKERS))

    def lease(self) -> LeaseSettings | None:
        """Return which Lease to lead by; None if this is the only replica."""
        election = self.configuration.leader_election
        if election is None or not election.leader_elect:
            return None
        return LeaseSettings(
            namespace=election.resource_namespace or self.namespace,
            name=election.resource_name,
            lease_duration=max(1, round(configuration.seconds(election.lease_duration))),
            renew_deadline=configuration.seconds(election.renew_deadline),
            retry_period=configuration.seconds(election.retry_period),
        )

    def webhook(self) -> ListenerSettings:
        """Return where the webhooks listen."""
        webhook = self.configuration.webhook
        return ListenerSettings(webhook.port, webhook.host or None)

    def status_server(self) -> ListenerSettings:
        """Return where pods report progress: any pod may connect, so there is room for thousands."""
        return ListenerSettings(self.configuration.status_server.port, connections=4096)

    def output_image(self) -> str:
        """Return the image with the program that sends output; by default, the initializers' of this release."""
        return self.configuration.output.image or f"{INITIALIZERS_IMAGE}:v{_version()}"

    def cache_image(self) -> str:
        """Return the image of data caches whose step names the reference's; by default, that of this release."""
        return self.configuration.cache.image or f"{names.CACHE_IMAGE}:v{_version()}"

    def health(self) -> ListenerSettings | None:
        """Return where the kubelet asks; None if nowhere."""
        return address(self.configuration.health.health_probe_bind_address, "health.healthProbeBindAddress")

    def metrics(self) -> ListenerSettings | None:
        """Return where Prometheus reads; None if nowhere."""
        return address(self.configuration.metrics.bind_address, "metrics.bindAddress")


def address(text: str, field_name: str) -> ListenerSettings | None:
    """Return where `:8081`, `127.0.0.1:8081` or `[::1]:8081` means to listen; None for `0` and nothing.

    Raises:
        ConfigurationError: it is no address; the message names the field.
    """
    if text in {"", "0"}:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigurationError([f"{field_name}: is {text!r}: write :PORT or HOST:PORT, or 0 to turn it off"])
    return ListenerSettings(int(port), host.strip("[]") or None)


def parse(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> Settings:
    """Read the flags, and the file that they name.

    Raises:
        ConfigurationError: the file cannot be read or is wrong; the message names each field.
    """
    environ = os.environ if environ is None else environ
    flags = _parser().parse_args(list(arguments))
    file = load(flags.config)
    gates, legacy = _gates(flags.feature_gates), _legacy(flags, file.legacy)
    if gates or legacy:
        tree = msgspec.to_builtins(file)
        tree |= {"featureGates": file.feature_gates | gates, "legacy": tree.get("legacy", {}) | legacy}
        file = configuration.read(tree)
    settings = Settings(
        configuration=file,
        kubeconfig=flags.kubeconfig,
        namespace=flags.namespace or _own_namespace(environ),
        watch_namespace=flags.watch_namespace or None,
        certificates=Path(flags.webhook_cert_dir or _certificate_folder(environ)),
        shutdown_delay=_duration(flags.shutdown_delay_duration, "--shutdown-delay-duration"),
        log_level=_level(flags.zap_log_level),
        log_format="console" if flags.zap_devel or flags.zap_encoder == "console" else "json",
    )
    settings.health()
    settings.metrics()
    return settings


def load(path: str | None) -> Configuration:
    """Read a Configuration file; without one, all defaults."""
    if not path:
        return Configuration()
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ConfigurationError([f"{path}: {error.strerror}"]) from error
    return configuration.load(text)


@cache
def _version() -> str:
    """Return the release that is installed, as images are tagged with it."""
    try:
        return version("trainplane").partition("+")[0]
    except PackageNotFoundError:
        return "0"


def _level(text: str) -> int:
    try:
        return level_of(text)
    except ValueError as error:
        raise ConfigurationError([f"--zap-log-level: {error}"]) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m trainplane.operator", description="Runs the Trainplane operator.")
    parser.add_argument("--config", help="Configuration file (config.trainer.kubeflow.org/v1alpha1)")
    parser.add_argument("--kubeconfig", help="kubeconfig; default: as kubectl, in a pod its service account")
    parser.add_argument("--namespace", help="the operator's namespace; default: the pod's own")
    parser.add_argument(
        "--watch-namespace", help="work on this namespace alone, with its TrainingRuntimes; default: all"
    )
    parser.add_argument("--feature-gates", default="", help="NAME=true,NAME=false; goes before the file's")
    parser.add_argument(
        "--webhook-cert-dir",
        help="folder with tls.crt and tls.key; default: $TMPDIR/k8s-webhook-server/serving-certs",
    )
    parser.add_argument(
        "--shutdown-delay-duration",
        default="5s",
        help="how long webhooks are served after SIGTERM, while the Service forgets this replica; default: 5s",
    )
    parser.add_argument("--zap-log-level", default="info", help="error, info, debug, or a number above 0 for debug")
    parser.add_argument("--zap-encoder", default="json", choices=("json", "console"), help="form of log lines")
    parser.add_argument("--zap-devel", nargs="?", const=True, default=False, type=_truth, help="logs for people")
    parser.add_argument(
        "--enable-scheme", action="append", default=[], help="serve this older kind too (pytorchjob); may be repeated"
    )
    parser.add_argument("--gang-scheduler-name", help="of jobs of older kinds: volcano or scheduler-plugins")
    parser.add_argument("--pytorch-init-container-image", help="with it workers of PyTorchJobs wait for the master")
    for ignored in ("--zap-stacktrace-level", "--zap-time-encoding"):
        parser.add_argument(ignored, help=argparse.SUPPRESS)
    return parser


def _legacy(flags: argparse.Namespace, file: configuration.Legacy) -> dict[str, Any]:
    """Return what the flags of training-operator say of older kinds, in the words of the file."""
    kinds = {kind.singular: plural for plural, kind in BY_PLURAL.items()}
    said = {
        "kinds": [*file.kinds, *(kinds.get(scheme.lower(), scheme) for scheme in flags.enable_scheme)],
        "gangSchedulerName": flags.gang_scheduler_name,
        "initImage": flags.pytorch_init_container_image,
    }
    return {name: value for name, value in said.items() if value and (name != "kinds" or flags.enable_scheme)}


def _duration(text: str, flag: str) -> float:
    try:
        return configuration.seconds(text)
    except ValueError as error:
        raise ConfigurationError([f"{flag}: {text!r} is no duration: write 5s, 500ms or 0s"]) from error


def _truth(text: str) -> bool:
    return text.lower() in {"true", "1", "t"}


def _gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value.lower() not in {"true", "false"}:
            raise ConfigurationError([f"--feature-gates: {part!r}: write {name or 'NAME'}=true or =false"])
        gates[name.strip()] = value.lower() == "true"
    return gates


def _own_namespace(environ: Mapping[str, str]) -> str:
    """Return the pod's namespace by its mount, then by the downward API's usual variable."""
    try:
        mounted = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        mounted = ""
    return mounted or environ.get("POD_NAMESPACE") or DEFAULT_NAMESPACE


def _certificate_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TMPDIR") or "/tmp") / "k8s-webhook-server" / "serving-certs"  # noqa: S108 as Go does
