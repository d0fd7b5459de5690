"""Cases of the Torch plugin, torchtune included."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Create, Tree
from tests.conformance.documents import (
    container,
    initializer_job,
    patch,
    patch_job,
    replicated_job,
    runtime,
    torch,
    train_job,
)


def _sized(**resources: Any) -> Tree:
    return replicated_job(containers=[container(resources=resources)])


def _processes(title: str, on: Tree, **trainer: Any) -> Case:
    return Case(f"torch processes: {title}", (Create(train_job(trainer=trainer)),), (on,))


PROCESSES = (
    _processes("a number of the TrainJob", torch(nodes=2), numProcPerNode=4, numNodes=3),
    _processes("nothing said", torch(nodes=2), image="test:trainjob"),
    _processes("whole CPUs of the runtime", torch(_sized(requests={"cpu": "4"})), image="i"),
    _processes("CPU limits of the runtime", torch(_sized(limits={"cpu": "3"})), image="i"),
    _processes("requests before limits", torch(_sized(requests={"cpu": "2"}, limits={"cpu": "8"})), image="i"),
    _processes("CPUs of the TrainJob", torch(), resourcesPerNode={"requests": {"cpu": "6"}}),
    _processes("half a CPU", torch(), resourcesPerNode={"requests": {"cpu": "500m"}}),
    _processes("two and a half CPUs", torch(), resourcesPerNode={"limits": {"cpu": "2500m"}}),
    _processes("no CPU", torch(), resourcesPerNode={"limits": {"cpu": 0}}),
    _processes("GPUs of the TrainJob", torch(), resourcesPerNode={"limits": {"nvidia.com/gpu": 8}}),
    _processes("GPUs of the runtime", torch(_sized(limits={"amd.com/gpu": 2, "cpu": 32})), image="i"),
    _processes("no GPUs, said so", torch(), resourcesPerNode={"limits": {"nvidia.com/gpu": 0, "cpu": 5}}),
    _processes(
        "GPUs of the runtime, CPUs of the TrainJob",
        torch(_sized(limits={"nvidia.com/gpu": 2})),
        resourcesPerNode={"requests": {"cpu": "6"}},
    ),
    _processes("a slice of a GPU", torch(), resourcesPerNode={"limits": {"nvidia.com/mig-1g.5gb": 1, "cpu": 5}}),
    _processes("a TPU", torch(), resourcesPerNode={"limits": {"google.com/tpu": 4, "cpu": 5}}),
    _processes("GPUs, and a number", torch(), resourcesPerNode={"limits": {"nvidia.com/gpu": 8}}, numProcPerNode=2),
)


def _injecting(*targets: tuple[str, list[str]]) -> Tree:
    entries = [{"jobName": job, "containerNames": names} for job, names in targets]
    return runtime(
        replicated_job("data", ancestor=None, containers=[container("loader")]),
        replicated_job(containers=[container(), container("side")], initContainers=[container("init")]),
        policy={"torch": {"envInjection": {"targets": entries}}},
    )


_INJECTING = _injecting(("node", ["side", "init"]), ("data", ["loader"]))
_MISSING = _injecting(("node", ["nobody"]), ("nowhere", ["side"]))

ENVIRONMENT = (
    Case(
        "7 Torch with 100 nodes, one CPU, user's env",
        (
            Create(
                train_job(
                    trainer={
                        "image": "test:trainjob",
                        "command": ["torchrun", "train.py"],
                        "args": ["--epochs=1"],
                        "env": [{"name": "A", "value": "1"}],
                        "resourcesPerNode": {"requests": {"cpu": "1", "memory": "4Gi"}},
                    }
                )
            ),
        ),
        (torch(nodes=100),),
    ),
    Case("Torch without a trainer", (Create(train_job()),), (torch(nodes=3),)),
    Case("Torch with an empty trainer", (Create(train_job(trainer={})),), (torch(nodes=3),)),
    Case("Torch with arguments alone", (Create(train_job(trainer={"args": ["train.py"]})),), (torch(nodes=2),)),
    Case(
        "Torch with arguments for the runtime's command",
        (Create(train_job(trainer={"args": ["train.py"]})),),
        (torch(replicated_job(containers=[container(command=["python3"])])),),
    ),
    Case(
        "Torch with a first node of the user's",
        (
            Create(
                train_job(
                    trainer={
                        "command": ["python3", "train.py"],
                        "env": [{"name": "MASTER_ADDR", "value": "mine"}, {"name": "MASTER_PORT", "value": "1"}],
                    }
                )
            ),
        ),
        (torch(nodes=2),),
    ),
    Case("Torch with no nodes", (Create(train_job(trainer={"numNodes": 0})),), (torch(nodes=3),)),
    Case(
        "Torch beside named and unnamed ports",
        (Create(train_job(trainer={"numNodes": 2})),),
        (
            torch(
                replicated_job(
                    containers=[
                        container(ports=[{"name": "http", "containerPort": 8080}, {"containerPort": 9000}]),
                        container("sidecar", ports=[{"containerPort": 9090}]),
                    ]
                )
            ),
        ),
    ),
    Case(
        "Torch beside its own port",
        (Create(train_job(trainer={"numNodes": 2})),),
        (torch(replicated_job(containers=[container(ports=[{"name": "dist", "containerPort": 29500}])])),),
    ),
    Case(
        "Torch in a subdomain",
        (Create(train_job(trainer={"numNodes": 2})),),
        (torch(network={"subdomain": "elsewhere"}),),
    ),
    Case(
        "Torch: the runtime's own PET variables give way",
        (Create(train_job(trainer={"numNodes": 2})),),
        (torch(replicated_job(containers=[container(env=[{"name": "PET_NNODES", "value": "9"}, {"name": "Z"}])])),),
    ),
    Case(
        "envInjection into sidecar, init container and another job",
        (Create(train_job(trainer={"numNodes": 2})),),
        (_INJECTING,),
    ),
    Case(
        "envInjection without a trainer",
        (Create(train_job()),),
        (_INJECTING,),
    ),
)
PATCHES = (
    Case(
        "11 Torch with patches of several managers",
        (
            Create(
                train_job(
                    trainer={"numNodes": 2},
                    runtimePatches=[
                        patch(
                            "a.example.com/x",
                            patch_job(
                                metadata={"labels": {"job": "a"}},
                                pod_metadata={"labels": {"pod": "a"}, "annotations": {"pod": "a"}},
                                serviceAccountName="a",
                                nodeSelector={"a": "a", "both": "a"},
                                tolerations=[{"key": "a", "operator": "Exists"}],
                                volumes=[{"name": "scratch", "emptyDir": {}}],
                                imagePullSecrets=[{"name": "a"}],
                                schedulingGates=[{"name": "a"}],
                                containers=[
                                    {
                                        "name": "side",
                                        "env": [{"name": "A", "value": "a"}],
                                        "volumeMounts": [{"name": "scratch", "mountPath": "/a"}],
                                        "securityContext": {"runAsUser": 1, "capabilities": {"add": ["A"]}},
                                    }
                                ],
                            ),
                        ),
                        patch(
                            "b.example.com/x",
                            patch_job(
                                nodeSelector={"both": "b"},
                                tolerations=[{"key": "b", "operator": "Exists"}],
                                affinity={
                                    "nodeAffinity": {
                                        "requiredDuringSchedulingIgnoredDuringExecution": {
                                            "nodeSelectorTerms": [
                                                {"matchExpressions": [{"key": "b", "operator": "Exists"}]}
                                            ]
                                        }
                                    }
                                },
                                imagePullSecrets=[{"name": "b"}],
                                securityContext={"fsGroup": 1},
                                containers=[{"name": "side", "securityContext": {"capabilities": {"add": ["B"]}}}],
                            ),
                            metadata={"labels": {"b": "b"}},
                        ),
                    ],
                )
            ),
        ),
        (
            torch(
                replicated_job(
                    containers=[container(), container("side", env=[{"name": "A", "value": "r"}])],
                    tolerations=[{"key": "runtime", "operator": "Exists"}],
                    nodeSelector={"runtime": "kept"},
                    imagePullSecrets=[{"name": "runtime"}],
                ),
                nodes=1,
            ),
        ),
    ),
    Case(
        "patches keep the runtime's order of jobs",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            "a.example.com/x",
                            patch_job(nodeSelector={"a": "b"}),
                            patch_job("dataset-initializer", nodeSelector={"c": "d"}),
                        )
                    ]
                )
            ),
        ),
        (torch(initializer_job("dataset", "dataset"), replicated_job()),),
    ),
    Case(
        "a patched volume of the same name takes the place of the runtime's",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            "a.example.com/x",
                            patch_job(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]),
                        )
                    ]
                )
            ),
        ),
        (torch(replicated_job(volumes=[{"name": "data", "emptyDir": {}}])),),
    ),
)

# -- torchtune ------------------------------------------------------------------------------------------------------

_KEPT = ["output_dir=/workspace/output", "tokenizer.path=/workspace/t", "checkpointer.checkpoint_dir=/workspace/model"]
_LORA = "model.lora_attn_modules=[q_proj]"
_QLORA = "model.quantize_base=True"
_DORA = "model.use_dora=True"


def _tune(
    title: str,
    name: str = "torchtune-llama3.2-1b",
    *,
    gpus: int | None = 2,
    command: tuple[str, ...] = ("tune", "run"),
    **trainer: Any,
) -> Case:
    shipped = [
        "tune",
        "run",
        "--rdzv_endpoint=localhost:29500",
        "full_finetune_distributed",
        "dataset.source=p",
        *_KEPT,
    ]
    limits: Tree = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    on = torch(replicated_job(containers=[container(command=shipped, **limits)]), nodes=1, name=name)
    job = train_job(runtime_name=name, trainer={"command": list(command), **trainer})
    return Case(f"torchtune: {title}", (Create(job),), (on,))


_ONE_GPU = {"limits": {"nvidia.com/gpu": 1}}
_LARGE = "torchtune-llama3.3-70b"
_QWEN = "torchtune-qwen2.5-1.5b"

TORCHTUNE = (
    _tune("full, one node"),
    _tune("full, one device", resourcesPerNode=_ONE_GPU),
    _tune("full, one process", numProcPerNode=1),
    _tune("full, no GPU", gpus=None),
    _tune("full, several processes", gpus=None, numProcPerNode=4),
    _tune("LoRA", args=[_LORA]),
    _tune("LoRA, one device", args=[_LORA], resourcesPerNode=_ONE_GPU),
    _tune("QLoRA, one device", args=[_LORA, _QLORA], resourcesPerNode=_ONE_GPU),
    _tune("QLoRA, several devices", args=[_LORA, _QLORA]),
    _tune("QLoRA, several processes", args=[_QLORA], numProcPerNode=2),
    _tune("DoRA", args=[_LORA, _QLORA, _DORA]),
    _tune("DoRA, one device", args=[_LORA, _DORA, "model.quantize_base=true"], resourcesPerNode=_ONE_GPU),
    _tune("several nodes of a small model", numNodes=2),
    _tune("several nodes of a large model", _LARGE, numNodes=2),
    _tune("LoRA on several nodes", _LARGE, numNodes=2, args=[_LORA]),
    _tune("QLoRA of a large model", _LARGE, args=[_LORA, _QLORA]),
    _tune("Qwen", _QWEN),
    _tune("Qwen with QLoRA", _QWEN, args=[_LORA, _QLORA], resourcesPerNode=_ONE_GPU),
    _tune("a model that it does not know", "torchtune-llama9.9-1b"),
    _tune("a runtime of another name", "runtime"),
    _tune("a managed setting in args", args=["output_dir=/mine", "epochs=1"]),
    _tune("another setting in args", args=["epochs=1", "output_directory=/x"]),
    _tune("a longer command of the user's", command=("tune", "run", "recipe")),
    _tune("another command", command=("python", "t.py")),
)

ADMISSION = (
    Case(
        "60 reserved env", (Create(train_job(trainer={"env": [{"name": "PET_NODE_RANK", "value": "1"}]})),), (torch(),)
    ),
    Case(
        "60 all reserved env",
        (
            Create(
                train_job(
                    trainer={
                        "env": [
                            {"name": f"PET_{name}", "value": "1"}
                            for name in ("NNODES", "NPROC_PER_NODE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "OTHER")
                        ]
                    }
                )
            ),
        ),
        (torch(),),
    ),
    Case("59 trainer config for torch", (Create(train_job(trainer={"numProcPerNode": 4})),), (torch(),)),
    Case("envInjection into what is not there", (Create(train_job(trainer={})),), (_MISSING,)),
)

CASES = (*PROCESSES, *ENVIRONMENT, *PATCHES, *TORCHTUNE, *ADMISSION)
