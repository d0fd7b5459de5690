"""Admission over HTTP: fetches the facts that a verdict needs, asks `admission`, and answers the API server.

Served by every replica from the start. Facts come from the mirrors; what a mirror does not know is read from the API
server, so a runtime created a moment ago, or a replica that is still filling its mirrors, refuses nobody by mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.admission.amounts import judge_amounts
from trainplane.admission.defaulting import default_trainjob, leaves_kind_open, needs_runtime, settle_kind
from trainplane.admission.edits import changes_only_suspend, changes_output
from trainplane.admission.immutability import touches_fixed
from trainplane.admission.implementations import default_runtime
from trainplane.admission.inuse import judge_edit, judge_removal
from trainplane.admission.jsonpatch import json_patch
from trainplane.admission.message import describe, shown
from trainplane.admission.runtimes import validate_runtime
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.errors import DecodeError
from trainplane.api.meta import ObjectMeta
from trainplane.api.trainjob import RuntimeRef
from trainplane.explain.standing import is_dispatched
from trainplane.kube.admission import allow, deny, mutate
from trainplane.kube.errors import NotFoundError
from trainplane.kube.resource import Key
from trainplane.operator.budget import Budget
from trainplane.operator.errors import OperatorError
from trainplane.operator.reviews import answer_of, named, new_of, old_of, refusing
from trainplane.render.findings import Verdict
from trainplane.resources import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.admission.trainjobs import RuntimeSource
    from trainplane.api.tree import Tree
    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.admission import Verdict as Answer
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Store
    from trainplane.kube.webhook import Review
    from trainplane.operator.runtimes import Runtime, Runtimes
    from trainplane.operator.snapshot import Snapshots
    from trainplane.render.pipeline import Pipeline

MUTATE_TRAIN_JOB: Final = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
MUTATE_TRAINING_RUNTIME: Final = "/mutate-trainer-kubeflow-org-v1alpha1-trainingruntime"
MUTATE_CLUSTER_TRAINING_RUNTIME: Final = "/mutate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
VALIDATE_TRAIN_JOB: Final = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
VALIDATE_TRAINING_RUNTIME: Final = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
VALIDATE_CLUSTER_TRAINING_RUNTIME: Final = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
PATHS: Final = (
    MUTATE_TRAIN_JOB,
    VALIDATE_TRAIN_JOB,
    VALIDATE_TRAINING_RUNTIME,
    VALIDATE_CLUSTER_TRAINING_RUNTIME,
    MUTATE_TRAINING_RUNTIME,
    MUTATE_CLUSTER_TRAINING_RUNTIME,
)
"""First the paths of the reference, whose webhook configurations serve ours, too; then those that it does not have."""

_NAMESPACE_ENDERS: Final = frozenset(
    {"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"}
)
"""Who deletes what is in a namespace that goes; the second where controllers share one identity."""


class Webhooks:
    """The reviews, by path."""

    def __init__(
        self,
        client: Client,
        runtimes: Runtimes,
        snapshots: Snapshots,
        pipeline: Pipeline,
        clock: Clock,
        *,
        job_sets: Store | None = None,
        allowed_patches: Sequence[str] | None = None,
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._snapshots = snapshots
        self._pipeline = pipeline
        self._clock = clock
        self._job_sets = job_sets
        self._allowed_patches = allowed_patches

    def routes(self) -> Mapping[str, Review]:
        """Return the handlers for a webhook server."""
        reviews: dict[str, Review] = {
            MUTATE_TRAIN_JOB: self.default_train_job,
            VALIDATE_TRAIN_JOB: self.validate_train_job,
            VALIDATE_TRAINING_RUNTIME: self.validate_runtime,
            VALIDATE_CLUSTER_TRAINING_RUNTIME: self.validate_runtime,
            MUTATE_TRAINING_RUNTIME: self.default_runtime,
            MUTATE_CLUSTER_TRAINING_RUNTIME: self.default_runtime,
        }
        return {path: refusing(review) for path, review in reviews.items()}

    async def default_train_job(self, request: AdmissionRequest) -> Answer:
        """Fill in what the schema cannot, and turn older fields into today's."""
        if request.operation not in {"CREATE", "UPDATE"}:
            return allow()
        sent, old = new_of(request), old_of(request)
        with Budget(named(request)):
            verdict = Verdict.of(judge_amounts(sent) if old is None else ())
        if not verdict.allowed:
            return deny(describe(verdict, names.TRAIN_JOB), code=422)  # as the schema would
        new = sent
        if leaves_kind_open(sent, old):
            own = settle_kind(sent, in_namespace=True)
            found = await self._live(own, request.namespace)
            new = own if found is not None else settle_kind(sent, in_namespace=False)
        runtime = None
        if needs_runtime(new, old):
            runtime, _ = await self._runtime(new, old, request.namespace)
        with Budget(named(request)):
            defaulted = default_trainjob(new, old, now=self._clock.now(), runtime=runtime)
            return mutate(json_patch(sent, defaulted.tree), warnings=shown(defaulted.warnings))

    async def validate_train_job(self, request: AdmissionRequest) -> Answer:
        """Return whether a TrainJob may be as it is."""
        if request.operation not in {"CREATE", "UPDATE"}:
            return allow()
        new, old = new_of(request), old_of(request)
        if old is not None and new.get("spec") == old.get("spec") and not changes_output(new, old):
            return allow()  # labels, other annotations, finalizers: nothing that rendering looks at
        runtime, source = await self._runtime(new, old, request.namespace)
        jobset = await self._jobset(new, old, request)
        with Budget(named(request)):
            verdict = validate_trainjob(
                new,
                old,
                runtime=runtime,
                runtime_source=source,
                jobset=jobset,
                pipeline=self._pipeline,
                allowed_patches=self._allowed_patches,
            )
            return answer_of(verdict, names.TRAIN_JOB)

    def default_runtime(self, request: AdmissionRequest) -> Answer:
        """Turn what only documents write in a runtime into what is stored."""
        if request.operation not in {"CREATE", "UPDATE"}:
            return allow()
        new = new_of(request)
        with Budget(named(request)):
            defaulted = default_runtime(new)
            return mutate(json_patch(new, defaulted.tree), warnings=shown(defaulted.warnings))

    async def validate_runtime(self, request: AdmissionRequest) -> Answer:
        """Return whether a runtime of either kind may be as it is, and whether it may go."""
        kind = request.kind.kind
        users = self._runtimes.users(kind, request.namespace, request.name)
        if request.operation == "DELETE":
            if _ends_namespace(request):
                return allow()
            others = [] if users else self._runtimes.users(kind, request.namespace, request.name, index="used")
            return answer_of(judge_removal(users, others), kind)
        if request.operation not in {"CREATE", "UPDATE"}:
            return allow()
        new, old = new_of(request), old_of(request)
        with Budget(named(request)):
            verdict = validate_runtime(new, old, most_pods=self._pipeline.most_pods)
            return answer_of(verdict if old is None else verdict + judge_edit(new, old, users), kind)

    async def _runtime(
        self, new: Tree, old: Tree | None, namespace: str
    ) -> tuple[Runtime | None, RuntimeSource | None]:
        """Return the runtime to judge by: of a TrainJob that has begun, the one that it began with."""
        if old is not None:
            kept = await self._kept(old, namespace)
            if kept is not None:
                return kept, "live" if self._is_unchanged(old, namespace) else "snapshot"
        live = await self._live(new, namespace)
        return live, None if live is None else "live"

    async def _live(self, job: Tree, namespace: str) -> Runtime | None:
        ref = _ref(job)
        if ref is None:
            return None
        try:
            found = await self._runtimes.find(ref, namespace)
        except OperatorError:  # a kind that is no runtime, or a runtime that cannot be read: there is none to judge by
            return None
        return None if found is None else found.document

    def _is_unchanged(self, job: Tree, namespace: str) -> bool:
        """Return whether the runtime is what it was when a TrainJob began, as far as the mirror knows."""
        ref = _ref(job)
        try:
            found = None if ref is None else self._runtimes.seen(ref, namespace)
        except OperatorError:
            return False
        return found is not None and found.text.digest == _digest(job)

    async def _kept(self, job: Tree, namespace: str) -> Runtime | None:
        """Return the runtime that has the digest in a TrainJob's status; a snapshot that has not is not looked at."""
        ref, digest = _ref(job), _digest(job)
        if ref is None or not digest:
            return None
        try:
            meta = msgspec.structs.replace(document.view(job.get("metadata"), ObjectMeta), namespace=namespace)
            return await self._snapshots.recorded(meta, ref, digest)
        except DecodeError:
            return None
        except OperatorError:  # a snapshot that cannot be used: the reconcile says so; judge by the runtime as it is
            return None

    async def _jobset(self, new: Tree, old: Tree | None, request: AdmissionRequest) -> Tree | None:
        """Return the JobSet where an edit may collide with it: only what is rendered, and only of what exists."""
        if old is None or changes_only_suspend(new, old) or is_dispatched(old):  # its JobSet is on another cluster
            return None
        if self._job_sets is not None and not touches_fixed(new, old):
            seen = self._job_sets.get(Key(request.namespace, request.name))
            if seen is not None:
                mirrored: Tree = document.decode_tree(seen)
                return mirrored  # its status is all that is looked at
        try:
            return await self._client.get(JOB_SETS, request.name, request.namespace)
        except NotFoundError:
            return None


def _ends_namespace(request: AdmissionRequest) -> bool:
    """Return whether a whole namespace goes: its TrainJobs go with it, in no particular order."""
    return request.user_info.username in _NAMESPACE_ENDERS


def _ref(job: Tree) -> RuntimeRef | None:
    try:
        return document.view(trees.get(job, "spec", "runtimeRef"), RuntimeRef)
    except DecodeError:
        return None


def _digest(job: Tree) -> str:
    """Return by what the runtime is known that a TrainJob began with; empty if it has not begun."""
    return str((job.get("status") or {}).get("runtimeDigest") or "")
