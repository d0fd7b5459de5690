"""Jobs of v1 in all their forms, each at some moment of its life: what both operators are asked about.

A case is drawn from its number alone, so that one that failed can be drawn again. What admission refuses is not drawn.
Times are long past or long to come: whatever a case says of the clock stays true while it runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import JAX, KINDS, PADDLE, PYTORCH, TENSORFLOW, XGBOOST, Kind
from trainplane.legacy.status import written

Tree = dict[str, Any]

V1: Final = (PYTORCH, TENSORFLOW, XGBOOST, PADDLE, JAX)
NAMESPACE: Final = "team"
UID: Final = "0d6e4079-e367-4f3d-8f05-5b0d4cbbd1e1"
HOUR: Final = timedelta(hours=1)
STAGES: Final = ("new", "running", "running", "running", "running", "suspended", "resumed", "over")
GANGS: Final = ("", "", "", "volcano", "scheduler-plugins")


@dataclass(frozen=True)
class Case:
    """One look: a job, what there is of it, and who schedules gangs."""

    number: int
    stage: str
    gang: str
    job: Tree
    pods: list[Tree] = field(default_factory=list)
    services: list[Tree] = field(default_factory=list)
    others: list[Tree] = field(default_factory=list)

    def __str__(self) -> str:
        return f"case {self.number} ({self.kind.name}, {self.stage})"

    @property
    def kind(self) -> Kind:
        """The kind of its job."""
        return KINDS[self.job["kind"]]

    @property
    def document(self) -> Tree:
        """The case as the oracle reads it."""
        return {
            "job": self.job,
            "pods": self.pods,
            "services": self.services,
            "others": self.others,
            "gang": self.gang,
        }


def draw(number: int, now: datetime) -> Case:
    """Return the case of a number, as it would be now."""
    return _Drawing(random.Random(number), now).case(number)  # noqa: S311 chance, not secrets


class _Drawing:
    """Draws one case."""

    def __init__(self, chance: random.Random, now: datetime) -> None:
        self.chance = chance
        self.now = now.astimezone(UTC).replace(microsecond=0)

    def case(self, number: int) -> Case:
        kind = V1[number % len(V1)]
        stage, gang = self.chance.choice(STAGES), self.chance.choice(GANGS)
        job = self._job(kind, stage)
        case = Case(number, stage, gang, job)
        if stage == "new":
            return case
        replicas = {name.lower(): one for name, one in job["spec"][kind.specs].items()}
        for name in kind.types:
            if name.lower() in replicas:
                self._members(case, name, replicas[name.lower()].get("replicas", 1))
        job["status"] = self._status(case)
        self._others(case)
        return case

    def _maybe(self, likely: float) -> bool:
        return self.chance.random() < likely

    def _ago(self, hours: float) -> str:
        return written(self.now - hours * HOUR)

    # -- the job

    def _job(self, kind: Kind, stage: str) -> Tree:
        elastic = kind is PYTORCH and self._maybe(0.3)
        spec: Tree = {"runPolicy": self._run_policy(stage)}
        spec[kind.specs] = {
            name.lower() if self._maybe(0.1) else name: self._replicas(kind, name)
            for name in self._types(kind, elastic=elastic)
        }
        if elastic:
            spec["elasticPolicy"] = self._elastic()
        if kind is PADDLE and names.MASTER not in spec[kind.specs] and self._maybe(0.2):
            spec["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 2}
        if kind is PYTORCH and self._maybe(0.4):
            spec["nprocPerNode"] = self.chance.choice(["auto", "4", "gpu"])
        if kind is TENSORFLOW:
            spec |= {"successPolicy": names.SUCCESS_ALL_WORKERS} if self._maybe(0.3) else {}
            spec |= {"enableDynamicWorker": True} if self._maybe(0.3) else {}
        metadata: Tree = {"name": "job", "namespace": NAMESPACE, "uid": UID, "creationTimestamp": self._ago(9)}
        if self._maybe(0.2):
            metadata["annotations"] = {"team": "blue"}
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}

    def _types(self, kind: Kind, *, elastic: bool) -> list[str]:
        if kind is JAX or elastic:
            return [names.WORKER]
        if kind is TENSORFLOW:
            chief = self.chance.choice([[], [], [names.CHIEF], [names.MASTER]])
            others = [one for one in (names.PS, names.EVALUATOR) if self._maybe(0.3)]
            return [*chief, *others, *([names.WORKER] if not chief or self._maybe(0.7) else [])]
        master_alone, both, workers = [names.MASTER], [names.MASTER, names.WORKER], [names.WORKER]
        if kind is XGBOOST:
            return self.chance.choice([master_alone, both, both])
        return self.chance.choice([master_alone, both, both, workers])

    def _replicas(self, kind: Kind, name: str) -> Tree:
        found: Tree = {"template": self._template(kind)}
        if name not in (names.MASTER, names.CHIEF):
            found["replicas"] = self.chance.choice([1, 2, 2, 3, 4] if self._maybe(0.97) else [0])
        elif self._maybe(0.5):
            found["replicas"] = 1
        if self._maybe(0.7):
            found["restartPolicy"] = self.chance.choice(names.RESTART_POLICIES)
        return found

    def _container(self, kind: Kind) -> Tree:
        container: Tree = {"name": kind.container, "image": "images.example/train:1", "command": ["python", "train.py"]}
        if self._maybe(0.3):
            container["ports"] = [{"name": kind.port_name, "containerPort": self.chance.choice([5000, 6000])}]
        if self._maybe(0.2):
            container["ports"] = [*container.get("ports", []), {"name": "metrics", "containerPort": 9090}]
        if self._maybe(0.3):
            container["env"] = [{"name": "EPOCHS", "value": "3"}, {"name": "RANK", "value": "mine"}]
        if self._maybe(0.5):
            container["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}}
        elif self._maybe(0.3):
            container["resources"] = {"limits": {"cpu": "3", "nvidia.com/gpu": "1"}}
        return container

    def _template(self, kind: Kind) -> Tree:
        spec: Tree = {"containers": [self._container(kind)]}
        if self._maybe(0.2):
            spec["containers"].insert(self.chance.randint(0, 1), {"name": "sidecar", "image": "images.example/side:1"})
        if self._maybe(0.15):
            spec["initContainers"] = [{"name": "fetch", "image": "images.example/fetch:1"}]
        if self._maybe(0.15):
            spec["restartPolicy"] = self.chance.choice(["Always", "Never"])
        if self._maybe(0.15):
            spec["schedulerName"] = "mine"
        if self._maybe(0.2):
            spec |= {"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
        if self._maybe(0.15):
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        metadata: Tree = {"labels": {"app": "demo", names.LABEL_JOB_NAME: "forged"}} if self._maybe(0.2) else {}
        metadata |= {"annotations": {"note": "kept"}} if self._maybe(0.2) else {}
        return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}

    def _elastic(self) -> Tree:
        found: Tree = {}
        for name, values in (
            ("minReplicas", [1]),
            ("maxReplicas", [4, 5]),
            ("rdzvBackend", list(names.RENDEZVOUS_BACKENDS)),
            ("rdzvPort", [29400]),
            ("rdzvHost", ["etcd.example"]),
            ("rdzvId", ["run-1"]),
            ("rdzvConf", [[{"key": "timeout", "value": "60"}, {"key": "a", "value": "b"}]]),
            ("standalone", [True, False]),
            ("nProcPerNode", [8]),
            ("maxRestarts", [0, 3]),
            ("metrics", [[_CPU_METRIC]]),
        ):
            if self._maybe(0.4):
                found[name] = self.chance.choice(values)
        return found

    def _run_policy(self, stage: str) -> Tree:
        found: Tree = {"suspend": True} if stage == "suspended" else {}
        for name, likely, values in (
            ("cleanPodPolicy", 0.6, list(names.CLEAN_POD_POLICIES)),
            ("backoffLimit", 0.3, [0, 1, 3]),
            ("ttlSecondsAfterFinished", 0.3, [60, 1_000_000]),
            ("activeDeadlineSeconds", 0.3, [600, 1_000_000]),
            ("managedBy", 0.1, [names.MANAGED_BY_TRAINING_OPERATOR, names.MANAGED_BY_MULTIKUEUE]),
        ):
            if self._maybe(likely):
                found[name] = self.chance.choice(values)
        if stage == "over" and self._maybe(0.1):
            found["suspend"] = True
        if self._maybe(0.4):
            found["schedulingPolicy"] = self._scheduling()
        return found

    def _scheduling(self) -> Tree:
        found: Tree = {}
        for name, value in (
            ("minAvailable", self.chance.choice([1, 2])),
            ("queue", "gold"),
            ("priorityClass", "high"),
            ("scheduleTimeoutSeconds", 30),
            ("minResources", {"cpu": "4"}),
        ):
            if self._maybe(0.4):
                found[name] = value
        return found

    # -- what there is of it

    def _members(self, case: Case, name: str, count: int) -> None:
        # With one more that is active, the old operator takes a pod that failed for none of backoffLimit's concern.
        beyond = "backoffLimit" not in case.job["spec"]["runPolicy"] and self._maybe(0.1)
        for index in range(count + beyond):
            if index >= count or self._maybe(0.85):
                case.pods.append(self._pod(case, name, index, is_beyond=index >= count))
            if self._maybe(0.9):
                case.services.append({"apiVersion": "v1", "kind": "Service", **self._owned(case, name, index)})

    def _owned(self, case: Case, name: str, index: int) -> Tree:
        labels = {
            names.LABEL_OPERATOR_NAME: case.kind.operator,
            names.LABEL_JOB_NAME: "job",
            names.LABEL_REPLICA_TYPE: name.lower(),
            names.LABEL_REPLICA_INDEX: str(index),
        }
        owner = {"apiVersion": case.kind.api_version, "kind": case.kind.name, "name": "job", "uid": UID}
        return {
            "metadata": {
                "name": names.pod_name("job", name, index),
                "namespace": NAMESPACE,
                "uid": f"uid-{name}-{index}",
                "creationTimestamp": self._ago(5),
                "labels": labels,
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            }
        }

    def _pod(self, case: Case, name: str, index: int, *, is_beyond: bool) -> Tree:
        phase = self.chance.choice(["Pending", "Running", "Running", "Running", "Running", "Succeeded", "Failed"])
        pod = {"apiVersion": "v1", "kind": "Pod", **self._owned(case, name, index)}
        if is_beyond:
            return {**pod, "status": {"phase": "Running"}}
        if self._maybe(0.5 if case.stage == "resumed" else 0.07):
            pod["metadata"]["deletionTimestamp"] = written(self.now)
        state: Tree = {"running": {"startedAt": self._ago(4)}}
        if phase in {"Succeeded", "Failed"}:
            code = self.chance.choice([1, 2, 130, 137, 143]) if phase == "Failed" else 0
            state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        restarts = self.chance.choice([0, 0, 0, 0, 1, 2])
        status: Tree = {"phase": phase}
        if phase != "Pending" and not (phase == "Failed" and self._maybe(0.15)):
            status["containerStatuses"] = [{"name": case.kind.container, "state": state, "restartCount": restarts}]
        return {**pod, "status": status}

    def _status(self, case: Case) -> Tree:
        kind = case.kind
        conditions = [self._condition(kind, names.CREATED)]
        status: Tree = {"conditions": conditions, "startTime": self._ago(6)}
        status["replicaStatuses"] = {
            name: {"active": self.chance.randint(0, 2)}
            for name in kind.types
            if name.lower() in {one.lower() for one in case.job["spec"][kind.specs]} and self._maybe(0.8)
        }
        before = self.chance.choice([None, names.RUNNING, names.RUNNING, names.RESTARTING])
        if before:
            conditions.append(self._condition(kind, before, is_true=case.stage != "resumed"))
        if case.stage == "resumed" or (case.stage == "suspended" and self._maybe(0.4)):
            conditions.append(self._condition(kind, names.SUSPENDED))
        if case.stage == "over":
            end = self.chance.choice([names.SUCCEEDED, names.FAILED])
            conditions[1:] = (
                [] if before == names.RESTARTING else [{**one, "status": "False"} for one in conditions[1:]]
            )
            conditions.append(self._condition(kind, end))
            status["completionTime"] = self._ago(1)
        return status

    def _condition(self, kind: Kind, name: str, *, is_true: bool = True) -> Tree:
        return {
            "type": name,
            "status": "True" if is_true else "False",
            "reason": f"{kind.name}{name}",
            "message": "as it was",
            "lastUpdateTime": self._ago(5),
            "lastTransitionTime": self._ago(5),
        }

    def _others(self, case: Case) -> None:
        metadata = {**self._owned(case, names.WORKER, 0)["metadata"], "name": "job", "labels": {}}
        metadata |= {key: case.job["metadata"][key] for key in ("annotations",) if key in case.job["metadata"]}
        if case.gang == "volcano" and self._maybe(0.8):
            phase = self.chance.choice(["Pending", "Inqueue", "Running"])
            group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata}
            spec = {"queue": self.chance.choice(["gold", "kept"])}
            case.others.append({**group, "spec": spec, "status": {"phase": phase}})
        elif case.gang == "scheduler-plugins" and self._maybe(0.8):
            group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata}
            case.others.append({**group, "spec": {"minMember": 1}})
        if case.job["spec"].get("elasticPolicy", {}).get("metrics") and self._maybe(0.6):
            scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
            case.others.append({**scaler, "spec": {"maxReplicas": 9, "scaleTargetRef": {"kind": "x", "name": "job"}}})


_CPU_METRIC: Final[Tree] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
