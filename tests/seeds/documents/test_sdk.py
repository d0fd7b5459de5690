"""Calls of the SDK that the guide lists, read from it, against a cluster.

Its import lines name the official package; ours has the same names (docs/sdk.md, "Coming from the kubeflow SDK").
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from lab.images import reference as image
from tests.e2e.shell import WAITING, shell_runtime
from tests.seeds.documents.reading import documents, statements
from trainplane.client import CustomTrainerContainer, KubernetesBackendConfig, TrainerClient
from trainplane.client.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.user import User

pytestmark = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")

_CALL = re.compile(r"(?:client|TrainerClient\(\))(\.\w+\([^()]*\))— ")


@pytest.fixture
def client(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainerClient]:
    monkeypatch.setenv("KUBECONFIG", str(user.cluster.kubeconfig))
    with TrainerClient(KubernetesBackendConfig(namespace=user.namespace)) as client:
        yield client


def _calls() -> dict[str, ast.Call]:
    """Return the calls of the guide, by the method's name."""
    texts = [match[1] for one in statements() if one.kind == "item" for match in _CALL.finditer(one.text)]
    calls = [cast("ast.Call", ast.parse(f"client{text}", mode="eval").body) for text in texts]
    return {_method(call): call for call in calls}


def _method(call: ast.Call) -> str:
    return cast("ast.Attribute", call.func).attr


def _made(client: TrainerClient, call: ast.Call, **values: Any) -> Any:
    """Make a call: names stand for values, and so does an argument that the guide leaves open."""
    arguments = [values[argument.id] for argument in call.args if isinstance(argument, ast.Name)]
    keywords = {
        one.arg: values[one.arg] if ast.unparse(one.value) == "..." else ast.literal_eval(one.value)
        for one in call.keywords
        if one.arg
    }
    return getattr(client, _method(call))(*arguments, **keywords)


def test_each_call_does_what_it_says(user: User, client: TrainerClient) -> None:
    calls = _calls()
    assert calls.keys() == {"train", "get_job", "get_job_logs", "list_runtimes", "delete_job"}
    user.apply(shell_runtime(f"echo begins; {WAITING}; echo ends; sleep 1"))

    assert "shell" in [one.name for one in _made(client, calls["list_runtimes"])]
    trainer = CustomTrainerContainer(image=image("python"), num_nodes=2)
    name = _made(client, calls["train"], runtime="shell", trainer=trainer)
    user.wait("both nodes", lambda: user.row(name)["READY"] == "2/2")
    job = _made(client, calls["get_job"], name=name)
    assert (job.status, [step.name for step in job.steps]) == ("Running", ["node-0", "node-1"])

    following = iter(_made(client, calls["get_job_logs"], name=name))
    assert next(following) == "begins"
    user.tell(name, "/tmp/go")
    assert list(following)[-1] == "ends"

    _made(client, calls["delete_job"], name=name)
    with pytest.raises(NotFoundError):
        client.get_job(name)
