from __future__ import annotations

from pathlib import Path

import pytest

from trainplane.hub.apiserver.readers import ReaderSettings
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.settings import Settings, parse


def test_defaults() -> None:
    assert parse(["--data=/data"]) == Settings(data=Path("/data"))


def test_flags() -> None:
    flags = [
        "--data=/data",
        "--kubeconfig=/k",
        "--namespace=hub",
        "--service=view",
        "--kueue-namespace=kueue",
        "--tls-cert-dir=/tls",
        "--listen=10.0.0.1:9443",
        "--keep-job-bytes=5Mi",
        "--keep-total-bytes=1Gi",
        "--keep-finished=2d",
        "--keep-deleted=30m",
        "--readers=9",
        "--readers-per-user=3",
        "--readers-per-namespace=5",
        "--log-level=debug",
    ]
    found = parse(flags)
    assert (found.kubeconfig, found.namespace, found.service, found.kueue_namespace) == ("/k", "hub", "view", "kueue")
    assert (found.listen.host, found.listen.port, found.certificates) == ("10.0.0.1", 9443, Path("/tls"))
    assert found.retention == Retention(5 << 20, 1 << 30, 172800.0, 1800.0)
    assert found.readers == ReaderSettings(user=3, namespace=5, total=9)
    assert found.log_level == "debug"
    assert parse(["--data=d", "--listen=[::1]:80"]).listen.host == "::1"
    assert parse(["--data=d", "--listen=:80"]).listen.host is None


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--listen=8443", "8443 is no address: write :PORT or HOST:PORT"),
        ("--listen=:99999", "is no address"),
        ("--keep-job-bytes=5M", "'5M' is no amount"),
        ("--keep-finished=2", "'2' is no time: write a number with s, m, h or d"),
        ("--log-level=loud", "invalid choice"),
    ],
)
def test_wrong_flags_are_named(flag: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--data=/data", flag])
    said = capsys.readouterr().err
    assert flag.partition("=")[0] in said
    assert message in said


def test_the_folder_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([])
    assert "--data" in capsys.readouterr().err
