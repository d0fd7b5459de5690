"""Attacks on whom the hub server believes: the cluster's list of who may speak for users, spoilt.

The hub server's own process, before an API server that says what no API server should.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.paths import REPOSITORY
from lab.pki import Authority
from lab.processes import wait_for
from tests.security.processes import in_thread
from trainplane.hub.apiserver.delegated_auth import CONFIG_MAP
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lab.pki import Pair
    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""
FORGED = "uid-of-somebody-else"


class Willing(FakeServer):
    """An API server that allows everybody everything, so that only the question who it is keeps anybody out."""

    def act(self, asking: Asking, fault: Fault | None) -> dict[str, Any]:
        """Allow everything."""
        if asking.target is not None and asking.target.collection.plural == "subjectaccessreviews":
            return {"status": {"allowed": True}}
        return super().act(asking, fault)


class Stage:
    """A hub server's process, and certificates of its front proxy's authority."""

    def __init__(self, folder: Path, stack: ExitStack, **lists: str) -> None:
        self.authority = Authority.create(folder / "pki", "front")
        self._folder = folder
        self.server = server = Willing()
        stack.enter_context(in_thread(server))
        data = {"requestheader-client-ca-file": (folder / "pki/ca.crt").read_text(), **lists}
        server.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": data})
        (folder / "kubeconfig").write_text(
            yaml.safe_dump(
                {
                    "current-context": "hub",
                    "contexts": [{"name": "hub", "context": {"cluster": "hub"}}],
                    "clusters": [{"name": "hub", "cluster": {"server": server.url}}],
                }
            )
        )
        pair = self.authority.issue("tls", "hub", hosts=("127.0.0.1",))
        self.log = folder / "log"
        command = [
            *(sys.executable, "-m", "trainplane.hub", f"--kubeconfig={folder / 'kubeconfig'}"),
            *(f"--data={folder / 'data'}", "--namespace=hub", "--listen=127.0.0.1:0"),
            f"--tls-cert-dir={pair.certificate.parent}",
        ]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env=environment)
        stack.callback(self._end)

    def _end(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def said(self, message: str) -> dict[str, Any] | None:
        """Return the log line of a message."""
        whole = (line for line in self.log.read_text().splitlines(keepends=True) if line.endswith("}\n"))
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return next((line for line in lines if line["msg"] == message), None)

    def wait(self, what: str, done: Callable[[], object]) -> None:
        wait_for(what, lambda: bool(done()), seconds=PATIENCE, log=self.log)

    def started(self) -> bool:
        """Wait until the server serves or has ended; say whether it serves."""
        self.wait("a start", lambda: self.process.poll() is not None or self.said("hub server runs"))
        return self.process.poll() is None

    def ask(self, name: str) -> int:
        """Return the status of `ask_once` as soon as the server knows what it answers by."""
        status = 503

        def has_answered() -> bool:
            nonlocal status
            status = self.ask_once(name)
            return status != 503

        self.wait("an answer", has_answered)
        return status

    def ask_once(self, name: str) -> int:
        """Ask for all TrainJobs as the cluster's admin, with a certificate of this name; return the answer's status."""
        line = self.said("hub server runs")
        assert line is not None
        pair: Pair = self.authority.issue(name, name)
        context = ssl.create_default_context(cafile=str(self._folder / "pki/ca.crt"))
        context.load_cert_chain(pair.certificate, pair.key)
        connection = http.client.HTTPSConnection("127.0.0.1", line["port"], timeout=PATIENCE, context=context)
        headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters", "X-Remote-Uid": FORGED}
        connection.request("GET", "/apis/hub.trainplane.dev/v1alpha1/trainjobs", headers=headers)
        status = connection.getresponse().status
        connection.close()
        return status


HEADERS = {
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
NAMES = "requestheader-allowed-names"


@pytest.mark.attack(
    "holder of any certificate of the front proxy's authority", "to speak for any user, by a list that cannot be read"
)
def test_speak_for_users_by_a_list_of_names_that_cannot_be_read(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stage = Stage(tmp_path, stack, **HEADERS, **{NAMES: "[front-proxy]"})
        assert not (stage.started() and stage.ask("mallory") == 200), "the cluster's admin is whoever says so"
        assert stage.process.poll() == 1
        line = stage.said("hub server ends")
        assert line is not None
        assert f"has a {NAMES} that is no JSON list of names: nobody is believed" in line["error"]


def test_who_is_named_is_believed_and_nobody_else(tmp_path: Path) -> None:
    """No attack: it shows that the others would succeed, if the server believed them."""
    with ExitStack() as stack:
        stage = Stage(tmp_path, stack, **HEADERS, **{NAMES: '["front-proxy"]'})
        assert stage.started()
        assert stage.ask("mallory") == 401
        assert stage.ask("front-proxy") == 200


@pytest.mark.attack("user of an API server that knows no uid header", "another user's uid, by a header of their own")
def test_be_authorized_with_the_uid_of_another(tmp_path: Path) -> None:
    """An API server that lists no uid headers, as those before 1.32, passes on what a user sends in one."""
    with ExitStack() as stack:
        stage = Stage(tmp_path, stack, **HEADERS, **{NAMES: '["front-proxy"]'})
        assert stage.started()
        assert stage.ask("front-proxy") == 200
        reviews = [json.loads(one.body)["spec"] for one in stage.server.requests if "accessreviews" in one.path]
        assert {(review["user"], review["uid"]) for review in reviews} == {("admin", "")}
