"""What an admin decides about the hub server: its flags."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.hub.apiserver.readers import ReaderSettings
from trainplane.hub.kinds import BY_PLURAL, TRAIN_JOB, JobKind
from trainplane.hub.logarchive.collector import CollectorSettings
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.workers import NAMESPACE as KUEUE_NAMESPACE
from trainplane.hub.workers import WORKER_SECONDS
from trainplane.kube.config import SERVICE_ACCOUNT
from trainplane.kube.listener import ListenerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_NAMESPACE: Final = "trainplane-hub"

BODY_BYTES: Final = 1 << 20
"""Bytes of a request's body: what is asked here has none, but for options that a client may send with a DELETE."""
SEND_SECONDS: Final = 300.0
"""Seconds that a reader may leave waiting what is sent to it: somebody may look at a log in a pager."""

_UNITS: Final = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_AMOUNT: Final = re.compile(r"(\d+)(Ki|Mi|Gi|Ti)?")
_DURATION: Final = re.compile(r"(\d+)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the composition root needs to know. Made by `parse`; tests make their own."""

    data: Path
    """Folder of the kept logs, on a volume that outlives the process."""
    kubeconfig: str | None = None
    """Path of the hub's kubeconfig; None finds the cluster as kubectl does, in a pod its own."""
    namespace: str = DEFAULT_NAMESPACE
    """Where the server runs: the Secret of its certificates, its Service."""
    service: str = "trainplane-hub"
    """The Service that the APIService names; the certificate is for it."""
    kueue_namespace: str = KUEUE_NAMESPACE
    """Where Kueue has the workers' kubeconfigs."""
    certificates: Path | None = None
    """Folder with tls.crt and tls.key; None: the server makes its own, and tells the APIService."""
    front_account: str | None = None
    """`system:serviceaccount:NAMESPACE:NAME` of the fronts that may speak for users; None: there are none."""
    listen: ListenerSettings = field(default_factory=lambda: _listen(8443))
    """Where the API server calls."""
    metrics: ListenerSettings | None = None
    """Where metrics are read, over TLS, by who may `get` /metrics on the hub; None: nowhere."""
    retention: Retention = field(default_factory=Retention)
    """How much is kept, and for how long."""
    readers: ReaderSettings = field(default_factory=ReaderSettings)
    """How many logs are read at once."""
    streams: int = CollectorSettings().streams
    """Logs that are followed at once on each cluster; more are read every few seconds."""
    worker_seconds: float = WORKER_SECONDS
    """Seconds that each worker may take to be read for an answer about events or a queue."""
    kinds: tuple[JobKind, ...] = (TRAIN_JOB,)
    """The kinds of jobs that are looked after."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""


def parse(arguments: Sequence[str]) -> Settings:
    """Read the flags; argparse ends the process with a message for a wrong one."""
    flags = _parser().parse_args(list(arguments))
    return Settings(
        data=flags.data,
        kubeconfig=flags.kubeconfig,
        namespace=flags.namespace or own_namespace(),
        service=flags.service,
        kueue_namespace=flags.kueue_namespace,
        certificates=flags.tls_cert_dir,
        front_account=flags.front_account,
        listen=listen_at(flags.listen),
        metrics=None if flags.metrics is None else listen_at(flags.metrics),
        retention=Retention(
            flags.keep_job_bytes,
            flags.keep_total_bytes,
            flags.keep_finished,
            flags.keep_deleted,
            flags.keep_job_files,
            flags.keep_total_files,
        ),
        readers=ReaderSettings(flags.readers_per_user, flags.readers_per_namespace, flags.readers),
        streams=flags.streams,
        worker_seconds=flags.worker_timeout,
        kinds=flags.legacy_kinds,
        log_level=flags.log_level,
    )


def _listen(port: int, host: str | None = None) -> ListenerSettings:
    return ListenerSettings(port, host, body_limit=BODY_BYTES, send_seconds=SEND_SECONDS)


def _parser() -> argparse.ArgumentParser:
    default = Retention()
    parser = argparse.ArgumentParser(
        "python -m trainplane.hub", description="Serves hub.trainplane.dev: dispatched jobs seen from the hub."
    )
    parser.add_argument("--data", type=Path, required=True, help="folder for kept logs, on a volume")
    parser.add_argument("--kubeconfig", help="the hub's kubeconfig; default: as kubectl, in a pod its service account")
    parser.add_argument("--namespace", help="the server's namespace; default: the pod's own")
    parser.add_argument("--service", default="trainplane-hub", help="the Service that the APIService names")
    parser.add_argument("--kueue-namespace", default=KUEUE_NAMESPACE, help="where Kueue has the workers' kubeconfigs")
    parser.add_argument("--tls-cert-dir", type=Path, help="folder with tls.crt and tls.key; default: make our own")
    parser.add_argument("--front-account", help="system:serviceaccount:NAMESPACE:NAME of the fronts, if there are any")
    parser.add_argument("--listen", type=address, default=":8443", help="HOST:PORT or :PORT for the API server")
    parser.add_argument("--metrics", type=address, help="HOST:PORT or :PORT for Prometheus; default: no metrics")
    parser.add_argument("--keep-job-bytes", type=_bytes, default=default.job_bytes, help="of one job, 256Mi")
    parser.add_argument("--keep-total-bytes", type=_bytes, default=default.total_bytes, help="of all, 8Gi")
    parser.add_argument("--keep-job-files", type=int, default=default.job_files, help="of one job, 65536")
    parser.add_argument("--keep-total-files", type=int, default=default.total_files, help="of all, 262144")
    parser.add_argument("--keep-finished", type=_duration, default=default.seconds, help="after the finish, 14d")
    parser.add_argument("--keep-deleted", type=_duration, default=default.deleted_seconds, help="after deletion, 1h")
    readers = ReaderSettings()
    parser.add_argument("--readers", type=int, default=readers.total, help="logs that are read at once, 256")
    parser.add_argument("--readers-per-user", type=int, default=readers.user, help="of them by one user, 16")
    parser.add_argument("--readers-per-namespace", type=int, default=readers.namespace, help="of one namespace, 64")
    parser.add_argument(
        "--streams", type=int, default=CollectorSettings().streams, help="logs followed on a cluster, 1024"
    )
    parser.add_argument("--worker-timeout", type=_duration, default=WORKER_SECONDS, help="that a worker may take, 10s")
    add_kinds(parser)
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Declare which kinds of jobs there are beside TrainJobs."""
    parser.add_argument(
        "--legacy-kinds",
        metavar="PLURAL,...",
        type=_kinds,
        default=(TRAIN_JOB,),
        help="kinds of kubeflow.org to look after beside TrainJobs, as in pytorchjobs,mpijobs; default: none",
    )


def _kinds(text: str) -> tuple[JobKind, ...]:
    """Return TrainJobs and the kinds of a list, each once, in the order of the table."""
    wanted = {word.strip() for word in text.split(",")} - {""}
    legacy = [kind for kind in BY_PLURAL.values() if kind is not TRAIN_JOB]
    if unknown := sorted(wanted - {kind.plural for kind in legacy}):
        there = ", ".join(kind.plural for kind in legacy)
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no kind of kubeflow.org: these are {there}")
    return TRAIN_JOB, *(kind for kind in legacy if kind.plural in wanted)


def address(text: str) -> str:
    """Return an address to listen at, checked; for argparse."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{host}{separator}{port} is no address: write :PORT or HOST:PORT")
    return text


def _bytes(text: str) -> int:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount: write bytes, or a number with Ki, Mi, Gi or Ti")
    return int(found[1]) * _UNITS[found[2] or ""]


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write a number with s, m, h or d")
    return float(int(found[1]) * _SECONDS[found[2]])


def listen_at(text: str) -> ListenerSettings:
    """Return where `:8443`, `127.0.0.1:8443` or `[::1]:8443` means to listen."""
    host, _, port = text.rpartition(":")
    return _listen(int(port), host.strip("[]") or None)


def own_namespace() -> str:
    """Return the pod's own namespace, or where the hub server is installed by default."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE
