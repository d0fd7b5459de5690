"""Trainings of every kind that the SDK can begin, on real pods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from lab.images import reference as image
from tests.sdk.official.cells import WAIT
from tests.sdk.official.probe import Observed, probe, row

if TYPE_CHECKING:
    from tests.sdk.official.side import Side

_FINISH = f"""
job = {WAIT.replace("set(status)", '{"Complete"}')}
steps = {{step.name: list(client.get_job_logs(name, step=step.name)) for step in job.steps}}
"""

TORCH = (
    """
def train(rounds):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.tensor([dist.get_rank() + 1.0])
    for _ in range(rounds):
        dist.all_reduce(total)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()}")
    dist.barrier()
    dist.destroy_process_group()


name = client.train(
    trainer=CustomTrainer(
        func=train,
        func_args={"rounds": 2},
        num_nodes=2,
        resources_per_node={"cpu": 1, "memory": "1Gi"},
    )
)
"""
    + _FINISH
    + "{'name': name, 'job': job, 'steps': steps}"
)


@probe(
    row("A.1", "`CustomTrainer` without a runtime: its function on two nodes", "torch-distributed, ranks 0 and 1 of 2"),
    row("A.4.2", 'amounts as numbers (`{"cpu": 1}`, which the SDK sends as 1.0)', "are the pods'"),
    row("A.4.2", 'amounts with a fraction (`{"cpu": 0.5}`)', "refused by the schema"),
    row("A.4.4", "steps", "node-0, node-1: cpu 1 each"),
)
def trains_a_function(side: Side) -> Observed:
    done = side.sdk.run(TORCH)
    job, steps = done["job"], done["steps"]
    assert len(done["name"]) == 12
    assert job["num_nodes"] == 2
    lines = sorted(line for lines in steps.values() for line in lines if line.startswith("rank"))
    assert lines == ["rank 0 of 2: 6.0", "rank 1 of 2: 6.0"], steps
    pods = side.admin.pods(job["name"])
    limits = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in pods]
    wanted = {"cpu": "1", "memory": "1Gi"}
    fraction = side.sdk.raised(TORCH.replace('"cpu": 1', '"cpu": 0.5'))
    (each,) = {f"{step['device']} {step['device_count']}" for step in job["steps"]}
    return (
        f"{job['runtime']['name']}, ranks 0 and 1 of 2",
        "are the pods'" if limits == [wanted, wanted] else str(limits),
        "refused by the schema" if "must be of type integer,string" in fraction.cause else "taken",
        f"{', '.join(sorted(steps))}: {each} each",
    )


CONTAINER = (
    """
program = "import os, sys; print(os.environ['RATE'], *sys.argv[1:])"
name = client.train(
    runtime="plain",
    trainer=CustomTrainerContainer(image=image, num_nodes=1, env={"RATE": "0.1"}),
    options=[
        Name(name="container"),
        Labels(labels={"team": "vision"}),
        Annotations(annotations={"ticket": "7"}),
        TrainerCommand(command=["python3", "-c", program]),
        TrainerArgs(args=["--epochs", "2"]),
    ],
)
"""
    + _FINISH
    + "steps"
)


@probe(
    row("A.1", "`CustomTrainerContainer` with an image, command, arguments, variables", "runs so"),
    row("A.3", "`Name`, `Labels`, `Annotations`", "are the TrainJob's"),
)
def trains_a_container(side: Side) -> Observed:
    steps = side.sdk.run(CONTAINER, image=image("python"))
    meta = side.admin.get("trainjobs", "container")["metadata"]
    asked = meta["labels"]["team"] == "vision" and meta["annotations"]["ticket"] == "7"
    return (
        "runs so" if steps == {"node-0": ["0.1 --epochs 2"]} else str(steps),
        "are the TrainJob's" if asked else str(meta),
    )


BUILTIN = (
    """
name = client.train(
    runtime="torchtune-qwen2.5-1.5b",
    initializer=Initializer(
        dataset=HuggingFaceDatasetInitializer(storage_uri="hf://tatsu-lab/alpaca/data", access_token="t0ken"),
        model=S3ModelInitializer(storage_uri="s3://models/qwen", region="eu-1"),
    ),
    trainer=BuiltinTrainer(
        config=TorchTuneConfig(
            dtype=DataType.BF16,
            batch_size=2,
            epochs=1,
            loss=Loss.CEWithChunkedOutputLoss,
            peft_config=LoraConfig(lora_rank=8),
            dataset_preprocess_config=TorchTuneInstructDataset(
                source=DataFormat.PARQUET, column_map={"input": "text"}
            ),
            resources_per_node={"gpu": 1},
        )
    ),
    options=[Name(name="tune")],
)
"""
    + _FINISH
    + "{'job': job, 'steps': steps}"
)


@probe(
    row("A.1", "`BuiltinTrainer` with LoRA on one GPU: torchtune is told", "lora_finetune_single_device"),
    row("A.4.2", "its config, and the arguments of `TorchTuneConfig`", "qwen2_5/1.5B_lora_single_device, and 9 of 9"),
    row("A.4.2", "initializers", "run first, with the address, token and region they were given"),
    row("A.4.4", "steps", "dataset-initializer, model-initializer, node-0"),
)
def fine_tunes(side: Side) -> Observed:
    done = side.sdk.run(BUILTIN)
    told = {step: _report(lines) for step, lines in done["steps"].items()}
    words: list[str] = told["node-0"]["args"]
    config = words[words.index("--config") + 1]
    recipe = words[words.index("--config") - 1]
    asked = [
        "dtype=bf16",
        "batch_size=2",
        "epochs=1",
        "loss=torchtune.modules.loss.CEWithChunkedOutputLoss",
        "dataset.data_dir=/workspace/dataset/data",
        "model.lora_rank=8",
        "dataset=torchtune.datasets.instruct_dataset",
        "dataset.source=parquet",
        "dataset.column_map={'input': 'text'}",
    ]
    given = {
        "dataset-initializer": {"STORAGE_URI": "hf://tatsu-lab/alpaca/data", "ACCESS_TOKEN": "t0ken"},
        "model-initializer": {"STORAGE_URI": "s3://models/qwen", "REGION": "eu-1"},
    }
    same = all(told[step]["env"].get(name) == value for step, wanted in given.items() for name, value in wanted.items())
    return (
        recipe,
        f"{config}, and {len(set(asked) & set(words))} of {len(asked)}",
        "run first, with the address, token and region they were given"
        if same and side.admin.is_last("tune", "node")
        else str(told),
        ", ".join(sorted(told)),
    )


def _report(lines: list[str]) -> dict[str, Any]:
    """Return what `REPORT` printed. The Kubernetes client takes a log that is JSON for an object and prints that."""
    (line,) = lines
    report: dict[str, Any] = ast.literal_eval(line)
    return report


CACHE = """
def my_train_func():
    import os

    print("rank", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"])


job_name = client.train(
    runtime=RUNTIME,
    initializer=Initializer(
        dataset=DataCacheInitializer(
            storage_uri="cache://schema_name/table_name",
            metadata_loc="s3://my-bucket/path/to/metadata.json",
            num_data_nodes=4,
            worker_mem="64Gi",
        ),
    ),
    trainer=CustomTrainer(
        func=my_train_func,
        num_nodes=8,
        resources_per_node={"gpu": 8},
    ),
)
"""
"""Seed 003's snippet; `RUNTIME` is where SDK 0.5.0 no longer takes what it says."""


@probe(
    row("seed 003", "a runtime as `Runtime(name=...)` alone, as SDKs before 0.5 took it", "TypeError, from the SDK"),
    row(
        "seed 003",
        "`DataCacheInitializer` on the runtime that v2.3.0 ships for it",
        "refused: it wants a mount named initializer",
        "8 nodes of 8 GPUs train once the cache is made",
    ),
)
def trains_from_a_cache(side: Side) -> Observed:
    name = "torch-distributed-with-cache"
    old = side.sdk.raised(CACHE.replace("RUNTIME", f"Runtime(name={name!r})"))
    assert "positional argument" in old.message, old
    outcome = side.sdk.outcome(
        CACHE.replace("RUNTIME", f"client.get_runtime({name!r})")
        + "client.wait_for_job_status(job_name, timeout=200, polling_interval=1)\n"
        + "[job_name, *(line for i in range(8) for line in client.get_job_logs(job_name, step=f'node-{i}')), "
        + "*client.get_job_logs(job_name, step='dataset-initializer')]"
    )
    if outcome.error:
        wants = "volumeMount" in outcome.error.cause or "volume mount" in outcome.error.cause.lower()
        what = "refused: it wants a mount named initializer" if wants else outcome.error.cause
        return (f"{old.type}, from the SDK", what)
    _, *lines, reported = outcome.value
    cache = _report([reported])
    assert cache["env"]["CLUSTER_SIZE"] == "5"
    assert cache["env"]["WORKER_MEM"] == "64Gi"
    assert lines == [f"rank {rank} of 8" for rank in range(8)]
    containers = [pod["spec"]["containers"][0] for pod in side.admin.pods(outcome.value[0])]
    gpus = [one["resources"]["limits"]["nvidia.com/gpu"] for one in containers if one["name"] == "node"]
    assert len(set(gpus)) == 1
    assert side.admin.is_last(outcome.value[0], "node")
    return (f"{old.type}, from the SDK", f"{len(gpus)} nodes of {gpus[0]} GPUs train once the cache is made")


PATCHED = (
    """
def show():
    import os

    print(os.path.isdir("/patched"))


pod = PodSpecPatch(
    node_selector={"kubernetes.io/os": "linux"},
    volumes=[{"name": "patched", "emptyDir": {}}],
    containers=[
        ContainerPatch(name="node", env=env, volume_mounts=[{"name": "patched", "mountPath": "/patched"}])
    ],
)


def patch(job):
    template = JobTemplatePatch(spec=JobSpecPatch(template=PodTemplatePatch(spec=pod)))
    jobset = JobSetSpecPatch(replicated_jobs=[ReplicatedJobPatch(name=job, template=template)])
    return RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=JobSetTemplatePatch(spec=jobset)))


"""
    'name = client.train(runtime="plain", trainer=CustomTrainer(func=show), options=[OPTIONS])\n'
)


@probe(
    row("A.3", "`RuntimePatch`: volumes, mounts, node selector", "are the pods'"),
    row("A.3", "`RuntimePatch`: variables of the container `node`", "refused"),
    row("A.3", "two `RuntimePatch` options", "refused: one entry for each manager"),
    row(
        "A.3",
        "`RuntimePatch` of a replicated job that the runtime does not have",
        "accepted; no pod ever comes",
        "refused, and the API server's answer names it",
    ),
)
def patches_a_runtime(side: Side) -> Observed:
    def cell(options: str) -> str:
        return PATCHED.replace("OPTIONS", options)

    steps = side.sdk.run(cell('Name(name="patched"), patch("node")') + _FINISH + "steps", env=None)
    (pod,) = side.admin.pods("patched")
    there = steps == {"node-0": ["True"]} and pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    variables = side.sdk.raised(cell('patch("node")'), env=[{"name": "RATE", "value": "0.1"}]).cause
    twice = side.sdk.raised(cell('patch("node"), patch("node")'), env=None).cause
    return (
        "are the pods'" if there else str(steps),
        "refused" if "env" in variables and '"code":403' in variables else variables,
        "refused: one entry for each manager" if "Duplicate" in twice else twice,
        _ghost(side, cell('Name(name="ghost"), patch("nodes")')),
    )


def _ghost(side: Side, cell: str) -> str:
    outcome = side.sdk.outcome(cell + "name", env=None)
    if outcome.error:
        named = "nodes" in outcome.error.cause and "nodes" not in outcome.error.message
        return "refused, and the API server's answer names it" if named else outcome.error.cause
    side.admin.wait("JobSet to fail", lambda: side.admin.has_event("ghost", "JobCreationFailed"))
    assert not side.admin.pods("ghost")
    return "accepted; no pod ever comes"


OPERATIONS = """
def my_train_func():
    print("trained")


client = TrainerClient()
runtime = next(one for one in client.list_runtimes() if one.name == "plain")
name = client.train(runtime=runtime, trainer=CustomTrainer(func=my_train_func))
client.wait_for_job_status(name, status={"Running", "Complete"}, timeout=200, polling_interval=1)
lines = list(client.get_job_logs(name, follow=True))
client.wait_for_job_status(name, timeout=200, polling_interval=1)
job = client.get_job(name)
client.delete_job(name)
{"name": name, "lines": lines, "status": job.status, "steps": [step.name for step in job.steps]}
"""
"""Seed 003's list of key operations, in the order in which a person comes to them."""


@probe(row("seed 003", "key operations: list, train, follow, get, delete", "Complete, 'trained', and all is gone"))
def does_the_key_operations(side: Side) -> Observed:
    done = side.sdk.run(OPERATIONS, bare=True)
    assert done["steps"] == ["node-0"]
    name = done["name"]
    for kind in ("trainjobs", "jobsets"):
        side.admin.wait(f"{kind} of {name} to go", lambda kind=kind: name not in side.admin.names(kind))  # type: ignore[misc]
    side.admin.wait(f"pods of {name} to go", lambda: not side.admin.pods(name))
    return (f"{done['status']}, {done['lines'][0]!r}, and all is gone",)
