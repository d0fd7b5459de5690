"""What waits for another issue does not work today. A test here that fails says: it is there, so the table's verdict is
`holds`, with a test that shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.localise import localised
from tests.e2e.shell import API
from tests.seeds.documents.indentation import indented
from tests.seeds.documents.promises import ROOT, TABLE, promises
from tests.seeds.documents.reading import documents, statements
from trainplane.client.errors import TrainplaneError

if TYPE_CHECKING:
    from tests.e2e.user import User
    from tests.seeds.documents.reading import Statement

Tree = dict[str, Any]

needs_documents = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")

_ISSUES = {one.id: one.issue for one in promises()}


def _waiting(issue: int, kind: str) -> list[Statement]:
    return [one for one in statements() if one.kind == kind and _ISSUES.get(one.id) == issue]


# -- 18 ---------------------------------------------------------------------------------------------------------------

UNTRIED = {one.id: one.untried for one in promises() if one.untried}


@pytest.mark.parametrize("statement", UNTRIED)
def test_nobody_has_tried_it(statement: str) -> None:
    folder, word = UNTRIED[statement]
    files = [path for path in folder.rglob("*") if path.suffix in {".py", ".yaml", ".ipynb"}]
    assert [path for path in files if TABLE.parent / "documents" not in path.parents and word in path.read_text()] == []


# -- 22 ---------------------------------------------------------------------------------------------------------------


def _cache_runtime(user: User) -> Tree:
    """Apply the runtime with a cache as it is written, with the lab's images, and return it."""
    (one,) = _waiting(22, "yaml")
    runtime = localised(yaml.safe_load(indented(one.text)), image_name="python", programs={})
    user.apply(runtime)
    return runtime


@needs_documents
def test_the_cache_cannot_be_asked_for(user: User) -> None:
    name = _cache_runtime(user)["metadata"]["name"]
    spec = {"runtimeRef": {"name": name}, "initializer": {"dataset": {"storageUri": "cache://schema/table"}}}
    job = {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": "cached"}, "spec": spec}
    assert "spec.initializer.dataset" in user.apply(job, check=False).stderr


def test_there_is_no_cache() -> None:
    """Its programs are there (`make cache`); no runtime starts them in a cluster."""
    assert not (ROOT / "runtimes/torch-distributed-with-cache.yaml").exists()


@needs_documents
def test_the_snippet_of_the_cache_fails(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """With our module's name in its import line, and a function under the name that it uses."""
    (one,) = _waiting(22, "python")
    monkeypatch.setenv("KUBECONFIG", str(user.cluster.kubeconfig))
    _cache_runtime(user)
    names: Tree = {"my_train_func": _train}
    with pytest.raises((TypeError, TrainplaneError)):
        exec(one.text.replace("kubeflow.trainer", "trainplane"), names)  # noqa: S102 a document's own lines
    assert "job_name" not in names


def _train() -> None:
    """What a user would train."""
