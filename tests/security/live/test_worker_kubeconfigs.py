"""Attacks of somebody who may write the Secret of a worker's kubeconfig: on the hub server's process, and on an admin's
`trainplane fleet`, with a real API server between.

The attacker's kubeconfigs are all there before the hub server starts, so that one look at the fleet is enough.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import sys
import threading
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import hub, kueue, trainplane
from lab.paths import REPOSITORY
from lab.processes import wait_for
from tests.fleet import objects

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.processes import Result

Tree = dict[str, Any]

ATTACKER = "author of a worker's Secret"
SECRET = "hunter2_is_no_name"
"""In every place where a token is, or where somebody may have put one by mistake."""
PAINT = "\033[2J\033[H\x9b32mall is well"
"""Clears a terminal and writes something else on it."""
PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing. The hub looks at its fleet every five."""


@dataclass
class Ear:
    """A port of the attacker's in the cluster's network: notes what comes, with TLS from whom, and gives an answer."""

    cluster: Cluster
    tls: ssl.SSLContext | None = None
    answer: bytes = b""
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        import socket  # noqa: PLC0415 the name is for types elsewhere

        with self.cluster.sandbox.entered():
            self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # closed: nobody listens any more
            while True:
                self._hear(self._listener.accept()[0])

    def _hear(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with contextlib.suppress(OSError), connection:
            if self.tls is None:
                self.heard.append(connection.recv(65536).decode(errors="replace"))
                return
            with self.tls.wrap_socket(connection, server_side=True) as spoken:
                spoken.recv(65536)  # with TLS 1.3 the client's certificate comes with its first bytes
                self.heard.append(repr(spoken.getpeercert()))
                spoken.sendall(self.answer)

    def close(self) -> None:
        self._listener.close()


def kubeconfig(users: list[Tree], server: str = "https://127.0.0.1:1", **cluster: Any) -> Tree:
    """Return a kubeconfig with these users, all called `w`."""
    return {
        "current-context": "w",
        "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        "clusters": [{"name": "w", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "w", "user": user} for user in users],
    }


class Stage:
    """A hub whose workers' Secrets the attacker writes."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.files = folder
        self._joined: list[str] = []
        self._prepared: list[Tree] = []

    # -- what the attacker writes ---------------------------------------------------------------------------------

    def evidence(self, worker: str = "") -> list[str]:
        """Return who has run the program of a worker's kubeconfig, or of any."""
        return [line for file in self.files.glob(f"ran-{worker or '*'}") for line in file.read_text().splitlines()]

    def program(self, worker: str) -> Tree:
        """Return a user who is a program that notes by whom it was run."""
        script = f"(tr '\\0' ' ' < /proc/$PPID/cmdline; echo) >> {self.files / f'ran-{worker}'}; exit 1"
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "interactiveMode": "Never",
                "command": "/bin/sh",
                "args": ["-c", script],
            }
        }

    def join(self, name: str, content: Tree | str) -> None:
        """Prepare a worker with this kubeconfig."""
        self.write(name, content)
        self._add(name, {"location": name, "locationType": "Secret"})

    def join_path(self, name: str, path: Path) -> None:
        """Prepare a worker whose kubeconfig is a file where the hub runs."""
        self._add(name, {"location": str(path), "locationType": "Path"})

    def write(self, name: str, content: Tree | str) -> None:
        """Prepare the Secret."""
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        meta = {"name": name, "namespace": kueue.NAMESPACE}
        self._prepared.append({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})

    def apply(self, *others: Tree) -> None:
        """Write all that is prepared."""
        self.cluster.apply(*self._prepared, *others)
        self._prepared.clear()

    def _add(self, name: str, source: Tree) -> None:
        spec = {"clusterSource": {"kubeConfig": source}}
        kind = {"apiVersion": objects.KUEUE, "kind": "MultiKueueCluster"}
        self._prepared.append({**kind, "metadata": {"name": name}, "spec": spec})
        self._joined.append(name)

    def leave(self) -> None:
        self.cluster.kubectl("delete", "multikueueclusters", *self._joined)

    # -- what becomes of it ---------------------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """What the hub server has said."""
        return self.cluster.log(hub.ENGINE).read_text()

    def refused(self, name: str) -> bool:
        """Return whether the hub server has said that it does not use a worker's kubeconfig."""
        whole = (line for line in self.log.splitlines(keepends=True) if line.endswith("}\n"))
        lines = (json.loads(line) for line in whole if line.startswith("{"))
        return any(line["msg"] == "worker cannot be used" and line["cluster"] == name for line in lines)

    def wait_refused(self, *names: str, unless: Callable[[], object] = bool) -> None:
        """Wait until the hub server says that it does not use these workers, or the attack has succeeded."""
        self.wait(f"the hub to refuse {', '.join(names)}", lambda: unless() or all(map(self.refused, names)))

    def wait(self, what: str, done: Callable[[], object]) -> None:
        """Wait, as long as the hub server runs."""
        process = self.cluster.engines()[hub.ENGINE].process
        wait_for(what, lambda: not process.alive() or bool(done()), seconds=PATIENCE, log=self.cluster.log(hub.ENGINE))
        assert process.alive(), "the hub server has ended"

    def fleet(self, *words: str) -> Result:
        """Run `trainplane fleet` as an admin does, from the hub."""
        command = [sys.executable, "-m", "trainplane.cli", "fleet", *words, f"--kubeconfig={self.cluster.kubeconfig}"]
        return self.cluster.sandbox.run(["env", f"PYTHONPATH={REPOSITORY / 'src'}", *command], check=False)

    def raw(self, path: str) -> Result:
        """Ask the hub server through the API server, as a user does."""
        return self.cluster.kubectl("get", "--raw", f"/apis/{hub.GROUP}/v1alpha1/{path}", check=False)


@dataclass
class Attack:
    """All that the attacker has prepared."""

    stage: Stage
    clear: Ear
    gate: Ear
    painter: Ear
    job: str
    """Path of a TrainJob that is on worker `turned`."""


@pytest.fixture(scope="module")
def attack(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attack]:
    folder = tmp_path_factory.mktemp("attacker")
    kueue.install_crds(cluster)
    trainplane.install_crds(cluster)
    stage = Stage(cluster, folder)
    clear, gate = Ear(cluster), Ear(cluster, _asks_for_certificates(cluster))
    painter = Ear(cluster, _serving(cluster), b"HTTP/1.1 403 Forbidden\r\n\r\n" + PAINT.encode())
    _prepare(stage, clear, gate)
    stage.join("painter", _trusting(cluster, painter, [{"token": "t"}]))
    attack = Attack(stage, clear, gate, painter, _job_on(stage, "turned"))
    if hub.ENGINE not in cluster.engines():
        hub.install(cluster)
    yield attack
    stage.leave()
    for ear in (clear, gate, painter):
        ear.close()


def _prepare(stage: Stage, clear: Ear, gate: Ear) -> None:
    token = {"token": "t"}
    stage.join("users", kubeconfig([stage.program("users"), token]))
    contexts = kubeconfig([stage.program("contexts")])
    contexts["users"].append({"name": "v", "user": token})
    contexts["contexts"].append({"name": "w", "context": {"cluster": "w", "user": "v"}})
    stage.join("contexts", contexts)
    for name, text in _two_readings(stage.program("readings")):
        stage.join(name, text)
    stage.join("clear", kubeconfig([{"token": SECRET}], f"http://127.0.0.1:{clear.port}"))
    own = stage.cluster.folder / f"{hub.ENGINE}-certs"
    files = {"client-certificate": str(own / "tls.crt"), "client-key": str(own / "tls.key")}
    stage.join("gated", _trusting(stage.cluster, gate, [files, token]))
    private = stage.files / "private"
    private.write_text(f"password: {SECRET} expires: never\n")
    stage.join_path("private", private)
    for index, text in enumerate(_misplaced()):
        stage.join(f"leak-{index}", text)


def _trusting(cluster: Cluster, ear: Ear, users: list[Tree]) -> Tree:
    """Return a kubeconfig that leads to the attacker's server."""
    authority = base64.b64encode(cluster.authority.read_bytes()).decode()
    return kubeconfig(users, f"https://127.0.0.1:{ear.port}", **{"certificate-authority-data": authority})


def _two_readings(program: Tree) -> Iterator[tuple[str, str]]:
    """Give kubeconfigs of which one reader may take the token and another the program."""
    run = json.dumps(program["exec"])
    head = (
        "current-context: w\n"
        "contexts: [{name: w, context: {cluster: w, user: w}}]\n"
        "clusters: [{name: w, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    )
    yield "keys", f"{head}users: [{{name: w, user: {{exec: {run}}}, user: {{token: t}}}}]\n"
    yield "lists", f"{head}users: [{{name: w, user: {{exec: {run}}}}}]\nusers: [{{name: w, user: {{token: t}}}}]\n"
    yield "alias", f"x: &u {{token: t}}\n{head}users: [{{name: w, user: *u}}]\n"
    yield "merge", f"{head}users: [{{name: w, user: {{<<: {{exec: null}}, token: t}}}}]\n"
    yield "tag", f"{head}users: [{{name: w, user: !!map {{token: t}}}}]\n"


READINGS = ("keys", "lists", "alias", "merge", "tag")


def _misplaced() -> list[str]:
    """Return kubeconfigs that are wrong, with the secret where it would be quoted."""
    head = "current-context: w\nusers:\n- name: w\n  user:\n"
    valid = yaml.safe_dump(kubeconfig([{"token": SECRET}]))
    return [
        f"{head}    token: {SECRET} expires: never\n",
        f"{head}    token: !{SECRET} x\n",
        f"{head}    token: *{SECRET}\n",
        f'{head}    token: "{SECRET}\\q"\n',
        yaml.safe_dump(kubeconfig([{"token": "t", "tokenFile": "/x"}])).replace("name: w", f"name: {SECRET}"),
        valid.replace("current-context: w", f"current-context: {SECRET}"),
        valid.replace("https://127.0.0.1:1", f"https://{SECRET}/"),
        valid.replace("https://127.0.0.1:1", f"ftp://x:{SECRET}@w"),
        valid.replace("server:", f"proxy-url: socks5://x:{SECRET}@w\n    server:"),
        valid.replace("server:", f"certificate-authority-data: {SECRET}\n    server:"),
        valid.replace("token:", f"as-groups: {SECRET}\n    token:"),
    ]


def _job_on(stage: Stage, worker: str) -> str:
    """Make a TrainJob that was dispatched to a worker, as Kueue would have left it; the worker is well for now."""
    cluster = stage.cluster
    stage.join(worker, cluster.remote_kubeconfig())
    namespace = f"team-{uuid.uuid4().hex[:6]}"
    job = objects.train_job("x", namespace, runtime="turned", queue=None, managedBy=objects.MULTIKUEUE)
    stage.apply(objects.namespace(namespace), objects.runtime("turned"), job)
    uid = cluster.get("trainjob", "x", "-n", namespace)["metadata"]["uid"]
    meta = {"name": "x", "namespace": namespace, "labels": {"kueue.x-k8s.io/job-uid": uid}}
    pods = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.invalid/c"}]}}
    spec = {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": pods}]}
    cluster.apply({"apiVersion": objects.KUEUE, "kind": "Workload", "metadata": meta, "spec": spec})
    patch = json.dumps({"status": {"clusterName": worker}})
    words = ("workload", "x", "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)
    cluster.kubectl("patch", *words)
    return f"namespaces/{namespace}/trainjobs/x"


def _serving(cluster: Cluster) -> ssl.SSLContext:
    pair = cluster.issue_serving(f"gate-{uuid.uuid4().hex[:6]}", "gate", ("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def _asks_for_certificates(cluster: Cluster) -> ssl.SSLContext:
    context = _serving(cluster)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cluster.authority)
    return context


# -- attacks ----------------------------------------------------------------------------------------------------------


@pytest.mark.attack(ATTACKER, "a program of theirs runs on the hub, by a user who stands twice")
def test_run_a_program_on_the_hub_by_a_second_user(attack: Attack) -> None:
    attack.stage.wait_refused("users", unless=lambda: attack.stage.evidence("users"))
    assert attack.stage.evidence("users") == []


@pytest.mark.attack(ATTACKER, "a program of theirs runs on the hub, by a context that stands twice")
def test_run_a_program_on_the_hub_by_a_second_context(attack: Attack) -> None:
    attack.stage.wait_refused("contexts", unless=lambda: attack.stage.evidence("contexts"))
    assert attack.stage.evidence("contexts") == []


@pytest.mark.attack(ATTACKER, "two readers of one YAML read two things")
@pytest.mark.parametrize("name", READINGS)
def test_let_the_judge_and_the_user_of_a_kubeconfig_read_two_things(attack: Attack, name: str) -> None:
    attack.stage.wait_refused(name)
    assert attack.stage.evidence("readings") == []


@pytest.mark.attack(ATTACKER, "what MultiKueue knows is sent in clear, to be read on the way")
def test_make_the_hub_send_a_token_in_clear(attack: Attack) -> None:
    attack.stage.wait_refused("clear", unless=lambda: attack.clear.heard)
    assert attack.clear.heard == []


@pytest.mark.attack(ATTACKER, "the hub logs in at the attacker's server with the certificate in its own files")
def test_make_the_hub_use_its_own_key_at_my_server(attack: Attack) -> None:
    attack.stage.wait_refused("gated", unless=lambda: attack.gate.heard)
    assert attack.gate.heard == []


@pytest.mark.attack("author of a MultiKueueCluster", "the content of a file of the hub, from an error")
def test_read_a_file_of_the_hub(attack: Attack) -> None:
    attack.stage.wait_refused("private")
    assert SECRET not in attack.stage.log


@pytest.mark.attack("reader of the hub's log", "a worker's token, from an error that quotes it")
def test_learn_a_token_from_the_hubs_log(attack: Attack) -> None:
    attack.stage.wait_refused(*(f"leak-{index}" for index in range(len(_misplaced()))))
    assert SECRET not in attack.stage.log


@pytest.mark.attack(
    ATTACKER, "a program of theirs runs as the admin who looks at the fleet, or reads tokens off the screen"
)
@pytest.mark.parametrize("words", [("check",), ("check", "--output", "json"), ("sync",)], ids=" ".join)
def test_attack_the_admin_who_looks_at_the_fleet(attack: Attack, words: tuple[str, ...]) -> None:
    said = attack.stage.fleet(*words, "--timeout", "2")
    assert said.code in {0, 1}, said.output
    assert "leak-0" in said.output
    assert SECRET not in said.output
    assert attack.stage.evidence() == []


@pytest.mark.attack("worker's admin", "the hub's admin reads on the terminal what the worker wrote there")
def test_repaint_the_admins_terminal(attack: Attack) -> None:
    said = attack.stage.fleet("check", "--timeout", "30")
    assert attack.painter.heard, "the worker is asked"
    assert "all is well" in said.output
    assert "\033" not in said.output
    assert "\x9b" not in said.output


@pytest.mark.attack("user with a TrainJob", "a worker's token, from the problem that their job's status tells")
def test_learn_a_token_from_a_jobs_status(attack: Attack) -> None:
    stage = attack.stage

    def status() -> Tree:
        answer = stage.raw(attack.job)  # not found, where the hub has run before and has not seen the job yet
        found: Tree = json.loads(answer.stdout).get("status", {}) if answer.code == 0 else {}
        return found

    def looked_at() -> bool:
        return status().get("cluster") == "turned" and "problem" not in status()

    stage.wait("the worker to be well", looked_at)
    stage.write("turned", _misplaced()[0])
    stage.apply()
    stage.wait("the problem", lambda: "problem" in status())
    for part in ("", "/pods", "/events", "/queue", "/log"):
        assert SECRET not in stage.raw(attack.job + part).output
    assert "turned" in status()["problem"]
    assert SECRET not in stage.log


CRASHES = {
    "label": kubeconfig([{"token": "t"}], f"https://{'a' * 64}.example"),
    "port": kubeconfig([{"token": "t"}], "https://127.0.0.1:99999"),
    "login": kubeconfig([{"token": "t"}], "https://a:b@127.0.0.1:1"),
    "alphabet": kubeconfig([{"token": "t"}], **{"certificate-authority-data": "w6k="}),
}


ANSWERS = {
    "nested": b"200 OK\r\n\r\n" + b'{"a":' + b"[" * 100_000,
    "status": b'503 Busy\r\n\r\n{"kind":"Status","reason":"a","details":{"retryAfterSeconds":["a"]}}',
}


@pytest.mark.attack(ATTACKER, "the hub server ends, and ends again at every start")
def test_stop_the_hub_for_everyone(attack: Attack) -> None:
    """By kubeconfigs of which no request can be made, and by servers whose answers nobody expects."""
    stage = attack.stage
    ears = [Ear(stage.cluster, _serving(stage.cluster), b"HTTP/1.1 " + answer) for answer in ANSWERS.values()]
    for name, content in CRASHES.items():
        stage.join(name, content)
    for name, ear in zip(ANSWERS, ears, strict=True):
        stage.join(name, _trusting(stage.cluster, ear, [{"token": "t"}]))
    stage.apply()
    stage.wait_refused(*CRASHES)
    stage.wait("each worker to be asked again after its answer", lambda: all(len(ear.heard) >= 3 for ear in ears))
    stage.cluster.kill(hub.ENGINE)
    stage.cluster.revive(hub.ENGINE)
    hub.wait_ready(stage.cluster)
    for ear in ears:
        ear.close()
