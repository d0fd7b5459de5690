from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.io.support import until
from trainplane.kube.credentials import Credential, bearer
from trainplane.kube.errors import CredentialError
from trainplane.kube.execplugin import API_VERSIONS, ExecPlugin
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

V1, V1BETA1 = API_VERSIONS

PROLOGUE = """import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
def answer(**status):
    print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(tmp_path: Path, code: str, **settings: Any) -> ExecPlugin:
    """Return a plugin that is a real little program."""
    program = tmp_path / "plugin.py"
    program.write_text(PROLOGUE + code)
    settings.setdefault("api_version", V1)
    return ExecPlugin(command=sys.executable, args=(str(program), *settings.pop("args", ())), **settings)


@pytest.mark.parametrize("version", API_VERSIONS)
async def test_a_token_with_its_expiry(tmp_path: Path, version: str) -> None:
    code = 'answer(token="secret", expirationTimestamp="2026-03-01T10:00:00+01:00")'
    credential, expires = await plugin(tmp_path, code, api_version=version).run()
    assert credential == bearer("secret")
    assert expires == datetime(2026, 3, 1, 9, tzinfo=UTC)


async def test_a_client_certificate(tmp_path: Path) -> None:
    code = 'answer(clientCertificateData="CERT", clientKeyData="KEY")'
    assert await plugin(tmp_path, code).run() == (Credential(None, ("CERT", "KEY")), None)


async def test_what_the_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "inherited")
    code = 'answer(token=json.dumps([sys.argv[1:], os.environ["OURS"], os.environ["THEIRS"], info, sys.stdin.read()]))'
    cluster = {"server": "https://a", "config": {"audience": "x"}}
    described = plugin(tmp_path, code, args=("--x", "y z"), env={"THEIRS": "given"}, cluster=cluster)
    credential, _ = await described.run()
    arguments, ours, theirs, info, stdin = json.loads((credential.authorization or "").removeprefix("Bearer "))
    assert (arguments, ours, theirs, stdin) == (["--x", "y z"], "inherited", "given", "")
    assert info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": cluster},
    }


async def test_stderr_is_shown_as_it_comes_and_repeated_in_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CredentialError, match="failed with code 3: log in at https://login"):
        await plugin(tmp_path, 'print("log in at https://login", file=sys.stderr); sys.exit(3)').run()
    assert capsys.readouterr().err == "log in at https://login\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sys.exit(7)", "code 7: it said nothing"),
        ('print("hello")', "printed no ExecCredential"),
        ('print("{}")', "answered with no apiVersion no kind"),
        ('info["apiVersion"] = "other/v1"; answer(token="x")', "answered with other/v1 ExecCredential, the kubeconfig"),
        ("answer()", "gave neither status.token nor"),
        ('answer(token="")', "gave neither status.token nor"),
        ('answer(clientCertificateData="CERT")', "a certificate without its key"),
        ('answer(token="x", expirationTimestamp="soon")', "printed no ExecCredential"),
    ],
)
async def test_answers_that_are_of_no_use(tmp_path: Path, code: str, says: str) -> None:
    with pytest.raises(CredentialError, match=says) as caught:
        await plugin(tmp_path, code).run()
    assert "exec plugin" in str(caught.value)


async def test_a_command_that_is_not_installed_gives_the_hint() -> None:
    absent = ExecPlugin(command="no-such-login", api_version=V1, install_hint="Get it from the portal.\n")
    with pytest.raises(CredentialError, match=r"'no-such-login' .* not installed\. Get it from the portal\.$"):
        await absent.run()


async def test_a_command_that_cannot_be_executed(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(CredentialError, match="cannot be started"):
        await ExecPlugin(command=str(broken), api_version=V1).run()


async def test_a_hung_plugin_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f'import time; open({str(pid)!r}, "w").write(str(os.getpid())); time.sleep(600)'
    clock = FakeClock()
    running = asyncio.create_task(plugin(tmp_path, code, clock=clock).run())
    await until(lambda: bool(pid.exists() and pid.read_text()))
    await clock.advance(300)
    with pytest.raises(CredentialError, match="did not end within 300 s"):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [
        ("Never", True, False),
        ("Never", False, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
async def test_interactive_modes(tmp_path: Path, mode: Any, *, terminal: bool, interactive: bool) -> None:
    code = 'answer(token=str(info["spec"]["interactive"]))'
    described = plugin(tmp_path, code, interactive_mode=mode, has_terminal=lambda: terminal)
    assert (await described.run())[0] == bearer(str(interactive))


async def test_always_interactive_without_a_terminal_does_not_run(tmp_path: Path) -> None:
    described = plugin(tmp_path, "answer(token='x')", interactive_mode="Always", has_terminal=lambda: False)
    with pytest.raises(CredentialError, match="interactiveMode Always, but there is no terminal"):
        await described.run()
