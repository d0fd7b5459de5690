"""`trainplane run`: a script, a function or a TrainJob, from here to its last line."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainplane.cli import sources
from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.types.trainers import Trainer

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", help="train.py, MODULE:FUNCTION, or job.yaml; - reads a TrainJob from input.")
]
Args = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- ARGS]...", help="For the script as they are; for a function NAME=VALUE.", show_default=False
    ),
]


def _option(names: str, metavar: str, text: str) -> Any:
    return typer.Option(*names.split(), metavar=metavar, help=text, show_default=False)


def command(
    source: Source,
    args: Args = None,
    name: Annotated[str | None, _option("--name", "NAME", "The TrainJob's name (default: drawn).")] = None,
    nodes: Annotated[int | None, _option("--nodes", "N", "How many nodes (default: the runtime's).")] = None,
    gpus: Annotated[int | None, _option("--gpus", "N", "GPUs of each node.")] = None,
    cpu: Annotated[str | None, _option("--cpu", "AMOUNT", "Processors of each node.")] = None,
    memory: Annotated[str | None, _option("--memory", "AMOUNT", "Memory of each node, such as 32Gi.")] = None,
    env: Annotated[
        list[str] | None, _option("-e --env", "NAME=VALUE", "A variable; NAME alone takes the value from here.")
    ] = None,
    env_secret: Annotated[
        list[str] | None, _option("--env-secret", "NAME=SECRET/KEY", "A variable that a Secret has the value of.")
    ] = None,
    runtime: Annotated[
        str | None, _option("--runtime", "NAME", "What it runs on (default: torch-distributed).")
    ] = None,
    queue: Annotated[str | None, _option("--queue", "NAME", "The LocalQueue that starts it.")] = None,
    priority: Annotated[str | None, _option("--priority", "NAME", "Its WorkloadPriorityClass.")] = None,
    output: Annotated[str | None, _option("--output", "URI", "Where /workspace/output goes: s3://…, gs://…")] = None,
    output_secret: Annotated[str | None, _option("--output-secret", "NAME", "The Secret with its credentials.")] = None,
    packages: Annotated[
        list[str] | None, _option("-p --packages", "PACKAGE", "Installed by pip before it starts; may be repeated.")
    ] = None,
    image: Annotated[str | None, _option("--image", "IMAGE", "The container image (default: the runtime's).")] = None,
    workspace: Annotated[
        str | None, _option("--workspace", "FOLDER", "The folder shipped with a script (default: this one).")
    ] = None,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Submit, print the name, and leave.")] = False,
    local: Local = False,
    containers: Containers = False,
    python: Annotated[str | None, _option("--python", "FILE", "With --local: the interpreter (default: ours).")] = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Run a script, a function or a TrainJob, and show it to its end.

    Ships the code, submits a TrainJob, says how it gets on, and prints the lines of all nodes, on a cluster or, with
    --local or --containers, on this machine. If it fails, says why and what to do. Ctrl-C asks whether to detach, to
    suspend or delete the job, or to go on; where there is nobody to ask, the job goes on without you.

    A script comes with the folder that you are in, less what .gitignore and .trainplaneignore name; what it is given
    stands behind --: trainplane run --nodes 2 train.py -- --epochs 3. A function is given NAME=VALUE:
    trainplane run train:fit epochs=3.

    Exit code: 0 the job is complete, or with --detach submitted; 1 it failed; 2 it cannot be submitted; 130 Ctrl-C.
    """
    del verbose
    trained = {
        "nodes": nodes,
        "gpus": gpus,
        "cpu": cpu,
        "memory": memory,
        "env": env,
        "env-secret": env_secret,
        "runtime": runtime,
        "output": output,
        "output-secret": output_secret,
        "packages": packages,
        "image": image,
        "workspace": workspace,
    }
    options = _options(name, queue, priority)
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers, python=python)
    if sources.kind_of(source) == "document":
        return _run_document(source, args or (), trained, options, connection, detach=detach)
    trainer = _trainer(source, args or (), trained)

    async def submit(client: AsyncTrainerClient) -> str:
        kept = _output(output, output_secret)
        return await client.train(runtime, trainer=trainer, options=options, output=kept)

    return asyncio.run(_work(connection, submit, detach=detach))


def _run_document(
    source: str,
    args: Sequence[str],
    trained: dict[str, Any],
    options: list[Any],
    connection: Connection,
    *,
    detach: bool,
) -> int:
    """Submit a TrainJob that is written already; what would change its spec belongs into it."""
    said = [f"--{name}" for name, value in trained.items() if value] + ["ARGS"] * bool(args)
    if said:
        raise CommandError(f"{said[0]} does not go with a TrainJob that is written: {source}", "write it there")
    document = sources.read_document(source)
    connection = sources.in_its_namespace(document, connection, source)
    return asyncio.run(_work(connection, lambda client: client.submit_job(document, options), detach=detach))


async def _work(connection: Connection, submit: Callable[[AsyncTrainerClient], Any], *, detach: bool) -> int:
    from trainplane.cli.attending import attend, how_to_return  # noqa: PLC0415 heavy

    async with connection.client() as client:
        name: str = await submit(client)
        said = Output(sys.stderr)
        said.line(f"TrainJob {name} is submitted")
        if not detach:
            return await attend(client, name, connection.words)
        said.line(how_to_return(name, connection.words))
        Output(sys.stdout).line(name)
        return 0


def _trainer(source: str, args: Sequence[str], trained: dict[str, Any]) -> Trainer:
    from trainplane.client.types.trainers import CustomTrainer, ScriptTrainer  # noqa: PLC0415 heavy

    resources = {name: trained[key] for key, name in (("gpus", "gpu"), ("cpu", "cpu"), ("memory", "memory"))}
    shared: dict[str, Any] = {
        "num_nodes": trained["nodes"],
        "resources_per_node": {name: amount for name, amount in resources.items() if amount is not None} or None,
        "env": {**sources.read_env(trained["env"] or ()), **_secrets(trained["env-secret"] or ())} or None,
        "packages_to_install": trained["packages"],
        "image": trained["image"],
    }
    if sources.kind_of(source) == "function":
        function = sources.load_function(source)
        return CustomTrainer(function, sources.read_arguments(args), workspace=trained["workspace"], **shared)
    script, folder = sources.find_script(source, trained["workspace"])
    return ScriptTrainer(script, list(args), workspace=folder, **shared)


def _secrets(words: Sequence[str]) -> dict[str, Any]:
    from trainplane.client.types.secrets import SecretRef  # noqa: PLC0415 heavy

    found = {}
    for word in words:
        name, _, place = word.partition("=")
        secret, _, key = place.partition("/")
        if not (name and secret and key):
            raise CommandError(f"--env-secret: {word!r} is no NAME=SECRET/KEY")
        found[name] = SecretRef(secret, key)
    return found


def _options(name: str | None, queue: str | None, priority: str | None) -> list[Any]:
    from trainplane.client import options  # noqa: PLC0415 heavy

    given = ((options.Name, name), (options.Queue, queue), (options.PriorityClass, priority))
    return [option(value) for option, value in given if value is not None]


def _output(uri: str | None, secret: str | None) -> Any:
    from trainplane.client.types.outputs import Output as Kept  # noqa: PLC0415 heavy

    if uri is None and secret is not None:
        raise CommandError("--output-secret goes with --output, which is missing")
    return None if uri is None else Kept(uri, secret)
