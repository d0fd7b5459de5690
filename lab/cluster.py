"""A cluster: a real etcd, kube-apiserver, controller-manager and scheduler in a sandbox of their own.

`Cluster.up` starts one and `Cluster.find` returns one that runs; other modules of the lab add to it (`jobset`, `node`,
`kueue`, `kwok`, `reference`). Each engine can be killed and revived by name, which is how faults are injected.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import signal
import socket
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from lab import addresses, audit, controlplane, etcd
from lab.connection import Connection
from lab.engines import binary
from lab.errors import LabError, NoClusterError
from lab.paths import REPOSITORY, state_root
from lab.pki import Authority, Pair, signing_pair
from lab.processes import Process, Result, run, wait_for
from lab.sandbox import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

_READY_SECONDS = 90
"""How long an engine may take to become ready; a warm start on an idle machine takes a tenth of it."""


@dataclass
class Engine:
    """How one engine of a cluster was started, so that it can be started again."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    started: int = 0

    @property
    def process(self) -> Process:
        """The process, running or not."""
        return Process(self.pid, self.started)


class Cluster:
    """A running cluster."""

    def __init__(self, sandbox: Sandbox, record: dict[str, Any]) -> None:
        self.sandbox = sandbox
        self.name = sandbox.name
        self.folder = sandbox.folder
        self.port: int = record["port"]
        self.index: int = record["index"]
        self._audited: bool = record.get("audited", False)
        self._everyone: bool = record.get("everyone", False)

    @classmethod
    def up(cls, name: str, *, owned: bool = False, audited: bool = False, everyone: bool = False) -> Cluster:
        """Start a control plane and wait until it is ready; what killed runs left behind is removed first.

        An owned cluster ends when the process that called this ends, however it ends. An audited one writes down each
        request of a service account, or of everyone: `audit` reads them.
        """
        (cluster,) = cls.up_together(name, owned=owned, audited=audited, everyone=everyone)
        return cluster

    @classmethod
    def up_together(
        cls, *names: str, owned: bool = False, audited: bool = False, everyone: bool = False
    ) -> list[Cluster]:
        """Start several control planes side by side; all are up, or none.

        What holds a cluster is made by the calling thread, with which owned ones end; the others end before this does.
        """
        sweep()
        made: list[tuple[Cluster, socket.socket]] = []
        try:
            for name in names:
                one = cls._make(name, owned=owned, audited=audited or everyone, everyone=everyone)
                made.append(one)
            with ThreadPoolExecutor(len(made)) as pool:
                list(pool.map(lambda one: one[0]._start(one[1]), made))  # noqa: SLF001 our own
        except BaseException:
            for cluster, _ in made:
                cluster.down()
            raise
        return [cluster for cluster, _ in made]

    @classmethod
    def _make(cls, name: str, *, owned: bool, audited: bool, everyone: bool) -> tuple[Cluster, socket.socket]:
        """Make a cluster in which nothing runs, and the socket at which its API server will be reached."""
        if Sandbox.find(name):
            message = f"a cluster `{name}` is up already: choose another name or run `python -m lab down {name}`."
            raise LabError(message)
        index = addresses.free_index({cluster.index for cluster in clusters()})
        sandbox = Sandbox.create(name, owned=owned)
        try:
            listener = socket.create_server(("127.0.0.1", 0))
            port, audited = listener.getsockname()[1], audited or audit.is_wanted()
            record = {"port": port, "index": index, "audited": audited, "everyone": everyone}
            (sandbox.folder / "cluster.json").write_text(json.dumps(record))
        except BaseException:
            sandbox.destroy()
            raise
        return cls(sandbox, record), listener

    @classmethod
    def find(cls, name: str) -> Cluster:
        """Return the running cluster of that name."""
        for cluster in clusters():
            if cluster.name == name:
                return cluster
        names = ", ".join(cluster.name for cluster in clusters()) or "none"
        message = f"no cluster `{name}` is up (up: {names}); start one with `python -m lab up {name}`."
        raise NoClusterError(message)

    def down(self) -> None:
        """End the cluster and leave nothing of it."""
        self.sandbox.destroy()

    # -- what it is made of ---------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The address of the cluster's one node, and of its API server for other clusters."""
        return addresses.node(self.index)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; good on the machine and inside the cluster's network."""
        return self.folder / "admin.kubeconfig"

    @property
    def authority(self) -> Path:
        """The certificate of the cluster's authority."""
        return self.folder / "pki" / "ca.crt"

    @property
    def webhook_pair(self) -> Pair:
        """The serving certificate for webhooks of engines that run beside the API server."""
        return Pair(self.folder / "pki/webhook/tls.crt", self.folder / "pki/webhook/tls.key")

    def log(self, engine: str) -> Path:
        """Return the log of an engine."""
        return self.folder / "logs" / f"{engine}.log"

    # -- engines --------------------------------------------------------------------------------------------------

    def start(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> Process:
        """Start an engine inside the cluster and remember how."""
        engine = Engine(name, command, environment or {})
        return self._launch(engine)

    def _launch(self, engine: Engine) -> Process:
        process = self.sandbox.spawn(engine.name, engine.command, engine.environment)
        engine.pid, engine.started = process.pid, process.started
        folder = self.folder / "engines"
        folder.mkdir(exist_ok=True)
        (folder / f"{engine.name}.json").write_text(json.dumps(asdict(engine)))
        return process

    def engines(self) -> dict[str, Engine]:
        """Return the engines of this cluster by name, running or not."""
        paths = sorted((self.folder / "engines").glob("*.json"))
        return {path.stem: Engine(**json.loads(path.read_text())) for path in paths}

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End an engine and wait until it is gone; `revive` brings it back."""
        process = self.engines()[name].process
        process.signal(number)
        if not process.wait_gone(30):
            message = f"{name} did not end within 30 s of signal {number}"
            raise LabError(message)

    def revive(self, name: str) -> Process:
        """Start an engine again as it was started before; readiness is the caller's to await."""
        engine = self.engines()[name]
        if engine.process.alive():
            message = f"{name} runs: kill it first"
            raise LabError(message)
        return self._launch(engine)

    # -- talking to it --------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Result:
        """Run kubectl as the administrator."""
        return run([binary("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments], stdin=stdin, check=check)

    def apply(self, *documents: dict[str, Any]) -> None:
        """Apply objects, server-side; as JSON, for CRDs are megabytes and YAML takes seconds to write."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def touch(self, namespace: str, pod: str, path: str) -> None:
        """Make a file in a pod: how a test tells a training to go on, or to stop.

        What waits for the file may end, and `touch` with its container (exit code 137), before kubectl hears of it:
        kubectl's code says nothing, so the test must see what it waits for.
        """
        self.kubectl("exec", f"--namespace={namespace}", pod, "--", "touch", path, check=False)

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get ARGUMENTS -o json` says."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)

    def wait_ready(self, seconds: float = _READY_SECONDS) -> float:
        """Wait until the API server says that it is ready; return the seconds it took."""
        return wait_for(
            "kube-apiserver", lambda: self._answers("/readyz"), seconds=seconds, log=self.log("kube-apiserver")
        )

    def wait_established(self, *crds: str) -> None:
        """Wait until CRDs are served, and discovery tells of them: controllers started earlier exit or time out."""

        def established() -> bool:
            with self.connection() as connection:
                for name in crds:
                    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
                    crd = json.loads(connection.send("GET", path))
                    conditions = crd.get("status", {}).get("conditions") or []
                    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                        return False
                    if not _is_discovered(connection, crd["spec"]):
                        return False
            return True

        wait_for(f"CRDs {', '.join(crds)}", established, seconds=_READY_SECONDS, log=self.log("kube-apiserver"))

    def wait_http(
        self, what: str, port: int, path: str = "/readyz", seconds: float = _READY_SECONDS, *, tls: str | None = None
    ) -> float:
        """Wait until an engine inside answers a health check: plain HTTP, or `tls` at an address of its certificate."""
        context = ssl.create_default_context(cafile=str(self.authority)) if tls else None

        def ready() -> bool:
            with self.sandbox.entered():
                connection = (
                    http.client.HTTPSConnection(tls, port, timeout=5, context=context)
                    if tls
                    else http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                )
                try:
                    connection.request("GET", path)
                    return connection.getresponse().status == http.HTTPStatus.OK
                except OSError:
                    return False
                finally:
                    connection.close()

        return wait_for(what, ready, seconds=seconds, log=self.log(what))

    def connection(self, timeout: float = 60, *, user: str = "") -> Connection:
        """Return a kept-alive connection to the API server for many small requests: as the administrator, or as `user`.

        A user is impersonated, which is all the same to whoever judges the request.
        """
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.folder / "pki/admin.crt", self.folder / "pki/admin.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)
        return Connection(connection, {"Impersonate-User": user} if user else {})

    def _answers(self, path: str) -> bool:
        try:
            with self.connection(timeout=5) as connection:
                connection.send("GET", path)
        except (OSError, http.client.HTTPException, LabError):
            return False
        return True

    def audit(self) -> list[dict[str, Any]]:
        """Return what service accounts asked of the API server until now, as its audit log has it."""
        return audit.read(audit.path_of(self.folder))

    def user(self, name: str, common_name: str, groups: tuple[str, ...] = ()) -> Path:
        """Return the kubeconfig of a user, with a certificate made now."""
        pair = Authority.load(self.folder / "pki").issue(name, common_name, groups=groups)
        return self._write_kubeconfig(name, pair, f"https://127.0.0.1:{self.port}")

    def issue_serving(self, name: str, common_name: str, hosts: tuple[str, ...]) -> Pair:
        """Return a serving certificate of the cluster's authority, made now."""
        return Authority.load(self.folder / "pki").issue(name, common_name, hosts=hosts)

    def remote_kubeconfig(self) -> str:
        """Return the administrator's kubeconfig as another cluster of the fleet must use it."""
        text = self.kubeconfig.read_text()
        return text.replace(f"https://127.0.0.1:{self.port}", f"https://{self.address}:{self.port}")

    def _write_kubeconfig(self, name: str, pair: Pair, server: str) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(_kubeconfig(self.name, server, self.authority, pair), sort_keys=False))
        return path

    # -- start ----------------------------------------------------------------------------------------------------

    def _start(self, listener: socket.socket) -> None:
        self.sandbox.run(["sh", "-euc", addresses.script(self.index)])
        self._make_pki()
        self.sandbox.spawn(
            "forward",
            [sys.executable, "-m", "lab.forward", str(listener.fileno()), str(self.port)],
            {"PYTHONPATH": str(REPOSITORY)},
            pass_fds=(listener.fileno(),),
        )
        listener.close()
        self.start("etcd", etcd.command(self.folder), controlplane.ENVIRONMENT)
        audits = audit.flags(self.folder, everyone=self._everyone) if self._audited else []
        apiserver = [*controlplane.apiserver(self.folder, self.port, self.index), *audits]
        self.start("kube-apiserver", apiserver, controlplane.ENVIRONMENT)
        self.wait_ready()
        self.start("kube-controller-manager", controlplane.controller_manager(self.folder), controlplane.ENVIRONMENT)
        self.start("kube-scheduler", controlplane.scheduler(self.folder), controlplane.ENVIRONMENT)

    def _make_pki(self) -> None:
        folder = self.folder / "pki"
        authority = Authority.create(folder, self.name)
        local = ("localhost", "127.0.0.1", self.address, addresses.first_service(self.index))
        inside = tuple(
            f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")
        )
        authority.issue("apiserver", "kube-apiserver", hosts=(*local, *inside))
        authority.issue("apiserver-kubelet", "kube-apiserver-kubelet", groups=("system:masters",))
        authority.issue("front-proxy", "front-proxy")
        webhook = authority.issue("webhook", "webhook", hosts=("localhost", "127.0.0.1", self.address))
        pair = self.webhook_pair
        pair.certificate.parent.mkdir()
        webhook.certificate.rename(pair.certificate)
        webhook.key.rename(pair.key)
        signing_pair(folder, "service-account")
        self.user("admin", "lab-admin", ("system:masters",))
        self.user("controller-manager", "system:kube-controller-manager")
        self.user("scheduler", "system:kube-scheduler")


def _is_discovered(connection: Connection, crd: dict[str, Any]) -> bool:
    """Tell if discovery knows every served version of a kind: it comes some time after the kind itself."""
    for version in crd["versions"]:
        if version["served"]:
            try:
                found = json.loads(connection.send("GET", f"/apis/{crd['group']}/{version['name']}"))
            except LabError:  # discovery knows no kind of the group yet
                return False
            if crd["names"]["plural"] not in {one["name"] for one in found["resources"]}:
                return False
    return True


def clusters() -> list[Cluster]:
    """Return the clusters that are up."""
    found = []
    for record in sorted(state_root().glob("*/cluster.json")):
        sandbox = Sandbox.find(record.parent.name)
        if sandbox and sandbox.holder.alive():
            found.append(Cluster(sandbox, json.loads(record.read_text())))
    return found


def sweep() -> list[str]:
    """Remove what is left of clusters whose processes are gone; return their names."""
    swept = []
    for folder in sorted(state_root().glob("*")):
        sandbox = Sandbox.find(folder.name)
        if sandbox and not sandbox.holder.alive() and not _just_begun(folder):
            sandbox.destroy()
            swept.append(folder.name)
    return swept


def _just_begun(folder: Path) -> bool:
    """Tell if another run is making this sandbox right now: its folder is there, its record not yet."""
    with contextlib.suppress(FileNotFoundError):
        return not (folder / "sandbox.json").exists() and time.time() - folder.stat().st_mtime < 30
    return False


def _kubeconfig(name: str, server: str, authority: Path, pair: Pair) -> dict[str, Any]:
    def data(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": data(authority)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
