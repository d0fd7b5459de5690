"""Commands of the documents: those that install are our page's, and what is submitted by one trains."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
import yaml

from lab.engines import binary
from lab.processes import run
from tests.e2e.shell import shell_job, shell_runtime
from tests.install.test_known_commands import COMMANDS
from tests.seeds.documents.reading import documents, statements

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.user import User
    from tests.seeds.documents.reading import Statement

_INSTALLING = [
    one for one in statements() if one.kind == "command" and re.match(r"kubectl apply .*-k|helm install", one.text)
]

pytestmark = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")


def _with_our_address(text: str) -> list[str]:
    """Return a command's words with our folder in the place of an address elsewhere, and without its version."""
    words = shlex.split(text.replace("\\\n", " "))
    words = [re.sub(r"^(https://)?github\.com/.*?(/|\.git/)(?=manifests/)|\?ref=.*$", "", word) for word in words]
    words = [re.sub(r"^oci://\S+/kubeflow-trainer$", "charts/trainplane", word) for word in words]
    if "--version" in words:
        at = words.index("--version")
        del words[at : at + 2]
    return words


@pytest.mark.parametrize("one", _INSTALLING, ids=lambda one: one.id)
def test_installations_are_those_of_our_page(one: Statement) -> None:
    """`tests/install/test_known_commands` runs each command of that page; only the address differs from theirs."""
    assert _with_our_address(one.text) in [shlex.split(command) for command in COMMANDS]


def test_a_file_is_submitted(user: User, tmp_path: Path) -> None:
    """`kubectl apply -f` of a file of the name that the document gives it, in the folder that it lies in."""
    (command,) = (one.text for one in statements() if one.kind == "command" and "apply -f" in one.text)
    words = shlex.split(command)
    (tmp_path / words[-1]).write_text(yaml.safe_dump(shell_job("submitted")))
    user.apply(shell_runtime("echo trained; sleep 1"))
    place = [f"--kubeconfig={user.cluster.kubeconfig}", f"--namespace={user.namespace}"]
    run([binary(words[0]), *place, *words[1:-1], str(tmp_path / words[-1])])
    user.wait_state("submitted", "Succeeded")
    assert user.logs("submitted") == ["trained"]
