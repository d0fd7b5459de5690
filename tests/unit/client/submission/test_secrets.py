"""Where a secret is found is named, with what to do; what it is never stands in a message."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.submission.drawn import drawn, pem
from trainplane.client.errors import CodeError, InvalidError, PlainSecretError
from trainplane.client.options import Annotations, ContainerPatch, NotSecret, RuntimePatch
from trainplane.client.options.patches import (
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    TrainingRuntimeSpecPatch,
)
from trainplane.client.submission import compose, search
from trainplane.client.types.initializers import HuggingFaceModelInitializer, Initializer, S3DatasetInitializer
from trainplane.client.types.secrets import SecretRef
from trainplane.client.types.trainers import CustomTrainer, CustomTrainerContainer, ScriptTrainer, Workspace

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop, Notebook
    from trainplane.api.tree import Tree

SHIPPED = ("hub-and-sdk", 6, "tokens in code, requirements and files of the workspace were shipped")
TOKEN = f"hf_{drawn(34)}"


def job(trainer: Any = None, *options: Any, initializer: Any = None) -> Tree:
    return compose("torch-distributed", initializer, trainer, options, backend="kubernetes", name=lambda: "drawn")


def refusal(*args: Any, secret: str = TOKEN, **more: Any) -> str:
    with pytest.raises(PlainSecretError) as caught:
        job(*args, **more)
    message = str(caught.value)
    assert secret not in message
    assert secret[4:20] not in message
    assert "which all who may list TrainJobs would read: " in message
    return message


def say(word: object) -> None:
    """Print a word."""
    print(word)  # noqa: T201 a node does


def test_a_variable_is_named_with_the_reference_to_write() -> None:
    message = refusal(CustomTrainerContainer("image", env={"A": "1", "HUB": TOKEN, "B": "2"}))
    assert message.startswith("the variable HUB holds a token of the Hugging Face hub")
    assert 'write env={"HUB": SecretRef("my-secret", "token")}' in message


def test_one_variable_can_tell_what_another_is() -> None:
    secret = drawn(40, "abcdefXYZ0123456789/+")
    message = refusal(CustomTrainerContainer("image", env={"I": "AKIA" + "A" * 16, "S": secret}), secret=secret)
    assert message.startswith("the variable S holds the secret that belongs to an AWS key")
    key = drawn(40, "0123456789abcdef")
    assert "the variable WANDB_API_KEY holds a key of Weights & Biases" in refusal(
        CustomTrainerContainer("image", env={"WANDB_API_KEY": key}), secret=key
    )
    assert job(CustomTrainerContainer("image", env={"REVISION": key, "KEY_ID": "AKIA" + "A" * 16}))


def test_initializers_and_patches_are_looked_at_too() -> None:
    with pytest.raises(PlainSecretError, match="access_token is given in the open"):
        HuggingFaceModelInitializer("hf://a/b", access_token=TOKEN)  # type: ignore[arg-type] # the point
    address = S3DatasetInitializer(f"s3://me:{drawn(12)}@bucket/x")
    assert "spec.initializer.dataset.storageUri holds a password in an address" in refusal(
        initializer=Initializer(dataset=address), secret=drawn(12)
    )
    pod = PodSpecPatch(containers=[ContainerPatch("node", env=[{"name": "T", "value": TOKEN}])])
    patch = RuntimePatch(
        TrainingRuntimeSpecPatch(
            JobSetTemplatePatch(
                spec=JobSetSpecPatch(
                    [
                        ReplicatedJobPatch(
                            "node", JobTemplatePatch(spec=JobSpecPatch(PodTemplatePatch({"annotations": {}}, pod)))
                        )
                    ]
                )
            )
        )
    )
    assert "the variable T holds" in refusal(CustomTrainerContainer("image"), patch)
    assert "metadata.annotations.note holds a token" in refusal(None, Annotations({"note": f"uses {TOKEN}"}))


@pytest.mark.finding(*SHIPPED)
@pytest.mark.parametrize(
    ("given", "where"),
    [
        (TOKEN, "func_args['word']"),
        (f"Bearer {TOKEN}", "func_args['word']"),
        ([1, {"a": (TOKEN,)}], "func_args['word'][1]['a'][0]"),
        ({TOKEN: 1}, "a key of func_args['word']"),
        (TOKEN.encode(), "func_args['word']"),
        ({TOKEN}, "func_args['word'][0]"),
    ],
)
def test_an_argument_is_named(given: Any, where: str) -> None:
    message = refusal(CustomTrainer(say, {"word": given}))
    assert message.startswith(f"{where} holds a token of the Hugging Face hub")
    assert 'read os.environ["TOKEN"] in your code' in message


def test_an_argument_of_a_script_is_named(laptop: Laptop) -> None:
    laptop.write("a.py", "")
    message = refusal(ScriptTrainer("a.py", ["--token", TOKEN], laptop.folder))
    assert message.startswith("args[1] holds a token of the Hugging Face hub")


@pytest.mark.finding(*SHIPPED)
def test_a_constant_of_a_notebook_is_named(notebook: Notebook) -> None:
    notebook.run(f"HF_TOKEN = '{TOKEN[:10]}' + '{TOKEN[10:]}'")
    notebook.run("def fit():\n    print(HF_TOKEN)")
    assert refusal(CustomTrainer(notebook["fit"])).startswith("your notebook (HF_TOKEN) holds a token of the Hugging")


def test_a_comment_in_a_notebook_is_named_by_its_function(notebook: Notebook) -> None:
    notebook.run(f"def fit():\n    # {TOKEN}\n    pass")
    assert refusal(CustomTrainer(notebook["fit"])).startswith("your notebook (in fit) holds a token")


def test_a_line_of_a_script_and_of_a_module_is_named(laptop: Laptop) -> None:
    laptop.write("settings.py", f"A = 1\n\nPASSPORT = '{TOKEN}'\n")
    laptop.write("work.py", "import settings\ndef train():\n    print(settings.PASSPORT)\n")
    message = refusal(CustomTrainer(laptop.function("work")))
    assert message.startswith("your module settings.py, line 3 (PASSPORT) holds a token of the Hugging Face hub")
    namespace = laptop.script(f"A = 1\n\ndef fit(token='{TOKEN}'):\n    print(A)\n")
    assert refusal(CustomTrainer(namespace["fit"])).startswith("your script job.py, line 3 (token) holds a token")


@pytest.mark.finding(*SHIPPED)
def test_a_file_of_the_workspace_is_named(laptop: Laptop) -> None:
    laptop.write("a.py", "")
    laptop.write("conf/x.yaml", f"a: 1\nhub:\n  token: {TOKEN}\n")
    message = refusal(ScriptTrainer("a.py", workspace=laptop.folder))
    assert message.startswith("conf/x.yaml of the workspace, line 3 (token) holds a token of the Hugging Face hub")
    assert "stays behind if .trainplaneignore names it" in message
    assert job(ScriptTrainer("a.py", workspace=Workspace(laptop.folder, ["conf/"])))
    (laptop.folder / "conf" / "x.yaml").unlink()
    (laptop.folder / "log.gz").write_bytes(gzip.compress(TOKEN.encode()))
    message = refusal(ScriptTrainer("a.py", workspace=laptop.folder))
    assert message.startswith("log.gz of the workspace, packed or put together from parts, holds a token")
    (laptop.folder / "log.gz").rename(laptop.folder / f"{TOKEN}.txt")
    with pytest.raises(PlainSecretError, match=r"the name of .* of the workspace holds a token"):
        job(ScriptTrainer("a.py", workspace=laptop.folder))


def test_what_cannot_be_searched_is_not_shipped(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "UNPACKED", 1 << 20)
    laptop.write("a.py", "")
    (laptop.folder / "data.gz").write_bytes(gzip.compress(b"\0" * (1 << 22)))
    with pytest.raises(CodeError, match=r"data.gz of the workspace holds packed data of more than .* MiB"):
        job(ScriptTrainer("a.py", workspace=laptop.folder))


@pytest.mark.finding(*SHIPPED)
@pytest.mark.parametrize(
    ("urls", "place", "variable"),
    [
        (["https://me:pw@a"], 0, "PIP_INDEX_URL"),
        (["https://a", "https://me:pw@b"], 1, "PIP_EXTRA_INDEX_URL"),
        ([f"https://{drawn(20)}@a/simple"], 0, "PIP_INDEX_URL"),
    ],
)
def test_an_index_that_one_logs_in_to_is_named(urls: list[str], place: int, variable: str) -> None:
    message = refusal(CustomTrainer(say, {"word": ""}, pip_index_urls=urls), secret=drawn(20))
    assert message.startswith(f"pip_index_urls[{place}] has a password or a token in it")
    assert f'env={{"{variable}": SecretRef("my-secret", "url")}}' in message


@pytest.mark.finding(*SHIPPED)
@pytest.mark.parametrize(
    "package",
    [
        f"git+https://{drawn(40)}@github.com/acme/x",
        f"x @ git+https://me:{drawn(40)}@github.com/acme/x",
        f"--extra-index-url https://me:{drawn(40)}@a/simple",
    ],
)
def test_a_package_that_one_logs_in_for_is_named(package: str) -> None:
    message = refusal(CustomTrainer(say, {"word": ""}, packages_to_install=["torch", package]), secret=drawn(40))
    assert message.startswith("packages_to_install[1] has a password or a token in its address")
    assert "with ${TOKEN} in its place, which pip replaces" in message


def test_other_addresses_are_taken() -> None:
    packages = ["git+ssh://git@github.com/acme/x", "x @ git+https://me@github.com/acme/x", "-r requirements.txt"]
    assert job(CustomTrainer(say, {"word": ""}, packages_to_install=packages, pip_index_urls=["https://me@a/simple"]))


@pytest.mark.parametrize("value", ["hf_short", "sk-", "https://example.com/sk-x", "a" * 40, "", "AKIA" + "A" * 16])
def test_other_values_are_no_tokens(value: str) -> None:
    assert job(CustomTrainerContainer("image", env={"A": value}))


def test_a_value_that_is_none_can_be_allowed(laptop: Laptop) -> None:
    laptop.write("a.py", f"# {TOKEN}")
    laptop.write("tests/key.pem", pem())
    trainer = ScriptTrainer("a.py", ["--token", TOKEN], laptop.folder, env={"A": TOKEN})
    composed = job(trainer, NotSecret(TOKEN), NotSecret(pem()))
    assert composed == job(trainer, NotSecret(f"{TOKEN} {pem()}"))
    assert "tests/key.pem of the workspace, line 1 holds a private key" in refusal(trainer, NotSecret(TOKEN))
    other = ScriptTrainer("a.py", [f"hf_{drawn(34, seed=2)}"], laptop.folder)
    assert "args[0] holds" in refusal(other, NotSecret(TOKEN), NotSecret(pem()))
    assert TOKEN not in repr(NotSecret(TOKEN))
    with pytest.raises(InvalidError, match="value of NotSecret must be the text that is no secret, whole"):
        NotSecret("")


def test_a_reference_goes_through() -> None:
    env = {"HF_TOKEN": SecretRef("hugging-face", "token"), "DB_PASSWORD": SecretRef("database", "password-2-of-us")}
    assert job(CustomTrainerContainer("image", env=env))


def test_nothing_of_it_is_loaded_before_a_job_is_composed() -> None:
    program = (
        "import sys, trainplane; from trainplane import *; from trainplane.options import *\n"
        "print([name for name in sys.modules if name.startswith('trainplane.client.submission')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
