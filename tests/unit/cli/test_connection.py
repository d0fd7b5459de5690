"""Where jobs are: one place, said once, and in the same words again."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.errors import UnreachableError


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ""),
        ({"namespace": "team"}, " --namespace team"),
        ({"context": "a b", "kubeconfig": "/c"}, " --context 'a b' --kubeconfig /c"),
        ({"local": True}, " --local"),
        ({"containers": True}, " --containers"),
    ],
)
def test_its_words_lead_there_again(given: dict[str, Any], words: str) -> None:
    assert Connection(**given).words == words


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"local": True, "containers": True}, "--local and --containers name different places"),
        ({"local": True, "namespace": "team"}, "--local and --namespace name different places"),
        ({"containers": True, "kubeconfig": "/c"}, "--containers and --kubeconfig name different places"),
        ({"python": "/usr/bin/python3"}, "--python goes with --local, which is missing"),
    ],
)
def test_two_places_are_one_too_many(given: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        Connection(**given)


async def test_jobs_of_this_machine_need_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    async with Connection(local=True).client() as client:
        assert isinstance(client.backend, ProcessBackend)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnreachableError, match="no container engine answers"):
        async with Connection(containers=True).client():
            pass
