"""What pods of each framework are told. That it is what the old operator tells them is asked in the conformance."""

from __future__ import annotations

import json

from tests.unit.legacy.jobs import env, job, look
from trainplane.api.legacy.kinds import JAX, PADDLE, PYTORCH, TENSORFLOW, XGBOOST
from trainplane.legacy.decision import Settings


def test_torch_workers_know_their_master_and_rank() -> None:
    decided = look(PYTORCH, job(PYTORCH, {"Master": 1, "Worker": 2}, nprocPerNode="4"))
    told = env(decided, "demo-worker-1")
    assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("demo-master-0", "23456")
    assert (told["RANK"], told["WORLD_SIZE"], told["PET_NNODES"]) == ("2", "12", "3")


def test_torch_workers_wait_for_their_master_and_masters_for_nobody() -> None:
    decided = look(PYTORCH, job(PYTORCH, {"Master": 1, "Worker": 1}), settings=Settings(init_image="mirror/wait:1"))
    master, worker = (one["spec"] for one in decided.create if one["kind"] == "Pod")
    assert "initContainers" not in master
    (wait,) = worker["initContainers"]
    assert (wait["image"], wait["command"][-2:]) == ("mirror/wait:1", ["demo-master-0", "100"])


def test_elastic_workers_meet_where_the_policy_says() -> None:
    policy = {"minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "etcd", "rdzvHost": "etcd", "rdzvPort": 2379}
    told = env(look(PYTORCH, job(PYTORCH, {"Worker": 2}, elasticPolicy=policy)), "demo-worker-0")
    assert (told["PET_RDZV_ENDPOINT"], told["PET_RDZV_BACKEND"], told["PET_NNODES"]) == ("etcd:2379", "etcd", "1:3")
    assert "RANK" not in told


def test_tensorflow_knows_all_and_only_the_container_that_trains_is_told() -> None:
    tree = job(TENSORFLOW, {"PS": 1, "Worker": 2})
    worker = tree["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"] = [*worker["containers"], {"name": "sidecar", "image": "images.example/side:1"}]
    decided = look(TENSORFLOW, tree, settings=Settings(cluster_domain="cluster.example"))
    config = json.loads(env(decided, "demo-worker-1")["TF_CONFIG"])
    assert config["cluster"]["ps"] == ["demo-ps-0.team.svc.cluster.example:2222"]
    assert config["task"] == {"type": "worker", "index": 1}
    assert env(decided, "demo-worker-1", container=1) == {}


def test_tensorflow_alone_is_told_nothing() -> None:
    assert env(look(TENSORFLOW, job(TENSORFLOW, {"Worker": 1})), "demo-worker-0") == {}


def test_a_dynamic_worker_knows_itself_and_the_servers() -> None:
    decided = look(TENSORFLOW, job(TENSORFLOW, {"PS": 1, "Worker": 3}, enableDynamicWorker=True))
    cluster = json.loads(env(decided, "demo-worker-2")["TF_CONFIG"])["cluster"]
    assert cluster == {"worker": {"2": "demo-worker-2.team.svc:2222"}, "ps": ["demo-ps-0.team.svc:2222"]}


def test_xgboost_ranks_follow_the_master() -> None:
    told = env(look(XGBOOST, job(XGBOOST, {"Master": 1, "Worker": 2})), "demo-worker-1")
    assert (told["RANK"], told["WORLD_SIZE"]) == ("2", "3")
    assert told["WORKER_ADDRS"] == "demo-worker-0,demo-worker-1"


def test_paddle_meets_at_its_master_which_knows_itself_by_its_address() -> None:
    decided = look(PADDLE, job(PADDLE, {"Master": 1, "Worker": 1}))
    assert env(decided, "demo-master-0")["PADDLE_MASTER"] == "$(POD_IP_DUMMY):36543"
    assert env(decided, "demo-worker-0")["PADDLE_MASTER"] == "demo-master-0:36543"
    assert env(decided, "demo-worker-0")["PADDLE_TRAINER_NUM"] == "1"


def test_jax_meets_at_worker_0() -> None:
    told = env(look(JAX, job(JAX, {"Worker": 3})), "demo-worker-2")
    assert (told["COORDINATOR_ADDRESS"], told["PROCESS_ID"], told["NUM_PROCESSES"]) == ("demo-worker-0", "2", "3")
