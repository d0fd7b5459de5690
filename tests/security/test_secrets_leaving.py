"""Whoever may list TrainJobs reads what a TrainJob holds: no secret of its author may be in it.

What leaves is taken where it leaves: at a real API server for one of each kind, and for all others at the function
that makes the document, whose arguments are unpacked as a node does it.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import importlib
import json
import linecache
import shutil
import subprocess
import sys
import tempfile
import uuid
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.local.machine import Podman
from tests.unit.client.code.stage import Notebook
from tests.unit.client.local.documents import launch, plan
from tests.unit.client.submission.drawn import drawn, pem, secrets
from trainplane.client.backends.container.runner import ContainerRunner
from trainplane.client.backends.local.folder import JobFolder
from trainplane.client.client import TrainerClient
from trainplane.client.errors import PlainSecretError
from trainplane.client.options import Annotations, Labels, Name
from trainplane.client.submission import compose
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.client.types.secrets import SecretRef
from trainplane.client.types.trainers import CustomTrainer, CustomTrainerContainer, ScriptTrainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

READER = "whoever may list TrainJobs"
TOKEN = f"hf_{drawn(34)}"
CRDS = Path(__file__).parents[2] / "manifests" / "crds"
RUNTIME = Path(__file__).parents[2] / "runtimes" / "torch-distributed.yaml"


def leaves(trainer: Any, *options: Any) -> bytes:
    """Return all bytes that a TrainJob would take out of this machine, readable; none if it is refused in silence."""
    try:
        job = compose("torch-distributed", None, trainer, options, backend="kubernetes", name=lambda: "x")
    except PlainSecretError as error:
        return str(error).encode() if TOKEN[4:16] in str(error) else b""
    args = (job["spec"].get("trainer") or {}).get("args") or []
    code = zlib.decompress(base64.b64decode("".join(args[2:]))) if args[:1] == ["node"] else b""
    return json.dumps(job).encode() + code


@pytest.fixture
def notebook() -> Iterator[Callable[[str], Any]]:
    """Return a function that runs a cell and gives back what it called `fit`."""
    cells = Notebook()

    def run(text: str) -> Any:
        cells.run(text)
        return cells["fit"]

    yield run
    for name in cells.names:
        linecache.cache.pop(name, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


@pytest.mark.attack(READER, "any token, key or password that stands in a file beside the script")
@pytest.mark.parametrize(("kind", "text"), secrets().items(), ids=secrets().keys())
def test_a_secret_in_a_file_of_the_workspace_stays(folder: Path, kind: str, text: str) -> None:
    (folder / "notes.txt").write_text(f"first line\n{text}\n")
    assert leaves(ScriptTrainer("train.py", workspace=folder)) == b""


@pytest.mark.attack(READER, "keys and tokens by the names of files that people forget: SSH, AWS, docker, npm, kubectl")
@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "id_ed25519",
        "id_rsa",
        "server.pem",
        "kubeconfig",
        "kaggle.json",
        ".aws/credentials",
        ".docker/config.json",
        ".kube/config",
        ".ssh/id_ed25519",
        "config.yaml",
        "deep/er/conf.toml",
        "run.ipynb",
        "weights.pkl",
        "data.csv",
        "no-ending",
        "brought-back/.env",
    ],
)
def test_a_file_that_holds_a_key_stays(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"a: 1\nkey: |\n{pem('OPENSSH ')}\ntoken: {TOKEN}\n")
    if name.startswith("brought-back"):
        (folder / ".trainplaneignore").write_text("!.env\n")
    sent = leaves(ScriptTrainer("train.py", workspace=folder))
    assert TOKEN.encode() not in sent
    assert b"OPENSSH PRIVATE KEY" not in sent


@pytest.mark.attack(READER, "a token that was packed away: compressed, encoded, in UTF-16")
@pytest.mark.parametrize("coat", ["gzip", "base64", "base64 of gzip", "utf-16"])
def test_a_packed_secret_stays(folder: Path, coat: str) -> None:
    secret = f"token: {TOKEN}\n".encode()
    packed = {
        "gzip": gzip.compress(secret),
        "base64": base64.b64encode(secret),
        "base64 of gzip": base64.b64encode(gzip.compress(secret)),
        "utf-16": secret.decode().encode("utf-16"),
    }[coat]
    (folder / "data.bin").write_bytes(packed)
    assert leaves(ScriptTrainer("train.py", workspace=folder)) == b""


@pytest.mark.attack(READER, "a token that a notebook's function uses, however it got there")
@pytest.mark.parametrize(
    "cell",
    [
        f"TOKEN = {TOKEN!r}\ndef fit():\n    print(TOKEN)",
        f"TOKEN = {TOKEN[:9]!r} + {TOKEN[9:]!r}\ndef fit():\n    print(TOKEN)",
        f"TOKEN = {TOKEN.encode()!r}\ndef fit():\n    print(TOKEN)",
        f"CONFIG = {{'hub': ['x', {TOKEN!r}]}}\ndef fit():\n    print(CONFIG)",
        f"def fit():\n    headers = {{'Authorization': 'Bearer {TOKEN}'}}",
        f"def fit():\n    print(f'Bearer {TOKEN} {{1 + 1}}')",
        f"def fit(token={TOKEN!r}):\n    print(token)",
        f"def fit():\n    '''Run with {TOKEN}.'''",
        f"def fit():\n    pass  # {TOKEN}",
        f"def fit():\n    print({TOKEN[:9]!r} {TOKEN[9:]!r})",
        f"class Hub:\n    token = {TOKEN!r}\ndef fit():\n    print(Hub.token)",
        f"def make(token):\n    def inner():\n        print(token)\n    return inner\nfit = make({TOKEN!r})",
        f"import functools\ndef plain(token): print(token)\nfit = functools.partial(plain, token={TOKEN!r})",
        f"KEY = '''{pem()}'''\ndef fit():\n    print(KEY)",
        f"WANDB = '{drawn(40, '0123456789abcdef')}'\ndef fit():\n    print(WANDB)",
    ],
)
def test_a_secret_of_a_notebook_stays(notebook: Callable[[str], Any], cell: str) -> None:
    assert leaves(CustomTrainer(notebook(cell))) == b""


@pytest.mark.attack(READER, "a token in a module that the function imports")
def test_a_secret_in_a_module_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving_settings.py").write_text(f"HUB = {TOKEN!r}\n")
    (tmp_path / "leaving_work.py").write_text("import leaving_settings\ndef fit():\n    print(leaving_settings.HUB)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert leaves(CustomTrainer(importlib.import_module("leaving_work").fit)) == b""
    finally:
        sys.modules.pop("leaving_work", None)
        sys.modules.pop("leaving_settings", None)


@pytest.mark.attack(READER, "a token among the arguments, packages, indexes, variables, labels of a call")
@pytest.mark.parametrize(
    "place",
    [
        "func_args",
        "header",
        "nested",
        "bytes",
        "packages",
        "token as user",
        "index",
        "env",
        "wandb",
        "password",
        "note",
    ],
)
def test_a_secret_in_the_call_stays(notebook: Callable[[str], Any], place: str) -> None:
    fit = notebook("def fit(x=None):\n    print(x)")
    key, password = drawn(40, "0123456789abcdef"), drawn(16)
    given: dict[str, Any] = {
        "func_args": CustomTrainer(fit, {"x": TOKEN}),
        "header": CustomTrainer(fit, {"x": f"Bearer {TOKEN}"}),
        "nested": CustomTrainer(fit, {"x": [{"a": (1, TOKEN)}]}),
        "bytes": CustomTrainer(fit, {"x": TOKEN.encode()}),
        "packages": CustomTrainer(fit, packages_to_install=[f"git+https://ghp_{drawn(36)}@github.com/acme/x"]),
        "token as user": CustomTrainer(fit, packages_to_install=[f"x @ git+https://{key}@git.acme/x"]),
        "index": CustomTrainer(fit, pip_index_urls=[f"https://{drawn(40)}@pypi.acme/simple"]),
        "env": CustomTrainerContainer("image", env={"HEADER": f"Bearer {TOKEN}"}),
        "wandb": CustomTrainerContainer("image", env={"WANDB_API_KEY": key}),
        "password": CustomTrainerContainer("image", env={"DB_PASSWORD": password}),
        "note": None,
    }
    options = [Annotations({"note": TOKEN}), Labels({"team": "a"})] if place == "note" else []
    assert leaves(given[place], *options) == b""


def test_a_function_without_a_secret_leaves(notebook: Callable[[str], Any], folder: Path) -> None:
    """So the tests above cannot pass because nothing ever leaves."""
    (folder / "config.yaml").write_text(
        "token: hf_your_token_here\nrevision: 0123456789abcdef0123456789abcdef01234567\n"
    )
    assert b"print(1)" in leaves(ScriptTrainer("train.py", workspace=folder, env={"HF_TOKEN": SecretRef("a", "b")}))
    assert b"print(x)" in leaves(CustomTrainer(notebook("def fit(x=1):\n    print(x)")))


@pytest.mark.attack(READER, "a token at a real API server, by listing TrainJobs after a user's working day")
def test_nothing_secret_is_at_the_api_server(
    cluster: Cluster, namespace: str, notebook: Callable[[str], Any], folder: Path, report: SuiteReport
) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRDS}")
    cluster.wait_established("trainjobs.trainer.kubeflow.org", "clustertrainingruntimes.trainer.kubeflow.org")
    cluster.kubectl("apply", "--server-side", f"--filename={RUNTIME}")
    (folder / "conf.yaml").write_text(f"hub: {TOKEN}\n")
    refused = 0
    with TrainerClient(KubernetesBackendConfig(namespace, config_file=str(cluster.kubeconfig))) as client:
        for trainer in (
            CustomTrainer(notebook(f"TOKEN = {TOKEN!r}\ndef fit():\n    print(TOKEN)")),
            ScriptTrainer("train.py", workspace=folder),
            CustomTrainerContainer("image", env={"HF_TOKEN": TOKEN}),
        ):
            with pytest.raises(PlainSecretError):
                client.train(trainer=trainer)
            refused += 1
        (folder / "conf.yaml").unlink()
        env = {"HF_TOKEN": SecretRef("hugging-face", "token")}
        client.train(trainer=ScriptTrainer("train.py", workspace=folder, env=env), options=[Name("clean")])
    stored = cluster.get("trainjobs", f"--namespace={namespace}")
    assert [job["metadata"]["name"] for job in stored["items"]] == ["clean"]
    assert leaves_of(stored["items"][0]).count(b"print(1)") == 1
    assert TOKEN.encode() not in leaves_of(stored["items"][0])
    report.figure("secrets_refused_before_the_api_server", refused)


def leaves_of(job: dict[str, Any]) -> bytes:
    """Return what a TrainJob of the API server holds, readable."""
    args = job["spec"]["trainer"]["args"]
    return json.dumps(job).encode() + zlib.decompress(base64.b64decode("".join(args[2:])))


OTHER = "another user of the machine"
KEY = pem("OPENSSH ")


@pytest.fixture(scope="module")
def engine() -> Iterator[tuple[Path, list[str]]]:
    """Return podman with a store of its own and an image, called through a program that notes its own command line.

    The folder has a short path: podman refuses a runroot of more than 50 characters.
    """
    folder = Path(tempfile.mkdtemp(prefix="tp-podman-"))
    (folder / "networks").mkdir()
    (folder / "image").mkdir()
    program = folder / "podman"
    program.write_text(f'#!/bin/sh\ntr "\\0" "\\n" < /proc/$$/cmdline >> {folder}/cmdlines\nexec podman "$@"\n')
    program.chmod(0o755)
    podman = Podman.below(folder / "store", folder / "image")
    words = [str(program), *(word for word in podman.options if "additionalimagestore" not in word)]
    words.remove("--storage-opt")
    archive = subprocess.run(["tar", "-C", str(folder / "image"), "-cf", "-", "."], capture_output=True, check=True)
    subprocess.run([*words, "import", "-", "empty:1"], input=archive.stdout, capture_output=True, check=True)
    yield folder, words
    podman.remove()
    shutil.rmtree(folder)


@pytest.mark.attack(OTHER, "a token or a key from the command line of docker or podman, by `ps`")
def test_no_secret_is_in_a_command_line(
    engine: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, words = engine
    given = {"HF_TOKEN": TOKEN, "SSH_KEY": KEY, "ALREADY": f"{TOKEN}\nb", "https_proxy": f"http://me:{TOKEN}@proxy"}
    monkeypatch.setenv("ALREADY", "here")
    monkeypatch.setenv("HF_TOKEN", "here, too")
    network = f"tp-{uuid.uuid4().hex[:8]}"
    settings = {"engine_name": "podman", "engine": words, "run_options": [], "pull_policy": "Never", "keep": True}
    runner = ContainerRunner(JobFolder(tmp_path), {**settings, "network": network, "remote": False})
    container = launch({"image": "empty:1"}, command=["/none"], variables=given)

    async def run() -> None:
        await runner.prepare(plan())
        await (await runner.start(container)).wait()

    def podman(*more: str, check: bool = False) -> bytes:
        return subprocess.run([*words, *more], capture_output=True, check=check).stdout

    try:
        asyncio.run(run())
        told = podman("inspect", "--format", "{{json .Config.Env}}", container.identity, check=True)
    finally:
        podman("rm", "--force", container.identity)
        podman("network", "rm", network)
    noted = (folder / "cmdlines").read_text()
    assert "create" in noted.split()
    assert TOKEN not in noted
    assert KEY.splitlines()[1] not in noted
    arrived = dict(entry.split("=", 1) for entry in json.loads(told))
    assert {name: arrived[name] for name in given} == given
