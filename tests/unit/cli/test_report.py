"""`trainplane report` and `trainplane ui` as they are typed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import aiohttp

from tests.unit.client.kubernetes.stage import Stage
from tests.unit.client.reading.documents import condition, ended, pod, runtime, train_job
from trainplane.cli import main
from trainplane.explain.bundle import write_bundle
from trainplane.explain.facts import Facts, Line
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SLOWEST = 120
"""Seconds for a process that starts beside another suite, on two cores."""
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u, namespace: team}}}}]
"""


def bundled(folder: Path, name: str = "fit") -> Path:
    job = train_job(name, conditions=[condition("Failed", "FailedJobs", "failed")])
    pods = [pod(0, "Failed", job=name, state=ended(1), env={"WANDB_API_KEY": "own"})]
    facts = Facts(job, pods, logs={"node-0": [Line("Traceback (most recent call last):"), Line("KeyError: 'x'")]})
    file = folder / "seen.json"
    file.write_text(write_bundle(facts))
    return file


def test_a_bundle_becomes_a_page(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert main(["report", "--bundle", str(bundled(tmp_path)), "-o", str(target)]) == 0
    page = target.read_text()
    assert page.startswith("<!doctype html>")
    assert "PythonError" in page


def test_without_a_name_the_page_is_called_after_the_file_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--bundle", str(bundled(tmp_path, name="../../evil"))]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["seen.html", "seen.json"]


def test_a_page_can_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--bundle", str(bundled(tmp_path)), "-o", "-"]) == 0
    assert "PythonError" in capsys.readouterr().out


def test_what_cannot_be_read_or_written_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(bundled(tmp_path))
    (tmp_path / "no.json").write_text("{}")
    for words in (
        ["report"],
        ["report", "fit", "--bundle", bundle],
        ["report", "--bundle", str(tmp_path / "gone.json")],
        ["report", "--bundle", str(tmp_path / "no.json")],
        ["report", "--bundle", bundle, "-o", str(tmp_path / "gone" / "x.html")],
        ["ui", "--port", "70000"],
    ):
        assert main(words) == 2
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)


async def test_a_job_of_a_cluster_becomes_a_page(tmp_path: Path) -> None:
    async with FakeServer() as server, server.client() as client:
        stage = Stage(server, client)
        server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
        stage.job(condition("Failed", "FailedJobs", "failed"))
        stage.pod(0, "Failed", state=ended(3), env={"MINE": "own-environment"})
        config = tmp_path / "config"
        config.write_text(KUBECONFIG.format(url=server.url))
        target = tmp_path / "a.html"
        words = ["report", "a", "-o", str(target), "--kubeconfig", str(config)]
        assert await asyncio.to_thread(main, words) == 0
        page = target.read_text()
        assert "ExitCode" in page
        assert "came from" in page
        assert "own-environment" not in page
        assert await asyncio.to_thread(main, ["report", "gone", "--kubeconfig", str(config)]) == 2


async def test_ui_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    async with FakeServer() as server, server.client() as client:
        Stage(server, client).job()
        config = tmp_path / "config"
        config.write_text(KUBECONFIG.format(url=server.url))
        words = [sys.executable, "-m", "trainplane.cli", "ui", "--kubeconfig", str(config)]
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "NO_COLOR": "1"}
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(SLOWEST), aiohttp.ClientSession(cookie_jar=_jar()) as session:
                address = (await process.stdout.readline()).decode().strip()
                async with session.get(address) as answer:
                    assert "Fleet" in await answer.text()
                async with session.get(answer.url.with_path("/jobs/a")) as answer:
                    assert "TrainJob" in await answer.text()
                process.send_signal(signal.SIGINT)
                _, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        assert (process.returncode, errors) == (0, b"")


def _jar() -> aiohttp.CookieJar:
    return aiohttp.CookieJar(unsafe=True)  # the address is a number, as for a browser
