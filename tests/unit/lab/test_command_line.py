from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lab.__main__ import main
from lab.webhooks import beside

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))


def test_status_says_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert "`python -m lab up` starts a cluster" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["kubeconfig"], ["exec", "--", "true"], ["logs", "etcd"], ["down", "lab"]])
def test_a_missing_cluster_is_one_line_with_the_way_out(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said == "lab: no cluster `lab` is up (up: none); start one with `python -m lab up lab`.\n"


def test_what_a_killed_run_left_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = tmp_path / "clusters" / "stale"
    left.mkdir(parents=True)
    (left / "sandbox.json").write_text('{"pid": 1, "started": -1}')
    assert main(["down"]) == 0
    assert "removed what was left of `stale`" in capsys.readouterr().out
    assert not left.exists()


def test_webhooks_point_beside_the_api_server(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("pem")
    cluster: Any = SimpleNamespace(authority=authority)
    shipped = [
        {
            "metadata": {"name": "mutating"},
            "webhooks": [
                {"name": name, "clientConfig": {"service": {"name": "s", "path": f"/{name}"}}} for name in ("a", "b")
            ],
        }
    ]
    (changed,) = beside(cluster, shipped, prefix="x", port=1, keep=lambda w: w["name"] == "b")
    assert changed["metadata"]["name"] == "x-mutating"
    assert changed["webhooks"] == [{"name": "b", "clientConfig": {"url": "https://127.0.0.1:1/b", "caBundle": "cGVt"}}]
