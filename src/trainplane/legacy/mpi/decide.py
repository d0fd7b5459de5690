"""What follows for an MPIJob from one look at it. Pure.

As mpi-operator v0.8.2 has it, but for suspension: there a suspended launcher's Job is kept and edited when the job
resumes, which Kubernetes allows for few fields only; here it goes, as the workers do, and is made anew. So whatever
Kueue or the user changed meanwhile holds for all pods, and retries are counted from the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names as common
from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy import news
from trainplane.legacy.decision import Decision, Ref
from trainplane.legacy.mpi import gang, hosts, judgement, objects, pods
from trainplane.legacy.mpi.job import MPIJob
from trainplane.legacy.mpi.status import Ledger, Seen, has_ended, report, shortened
from trainplane.legacy.tally import is_terminating, phase
from trainplane.legacy.training import MOST_MADE
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Observed, Settings

_INVALID: Final = "ValidationError"
_OVERRIDDEN: Final = EventContent(
    "Warning",
    "SetPodTemplateRestartPolicy",
    f"spec.mpiReplicaSpecs[{names.LAUNCHER}].template.spec.restartPolicy is not read: write restartPolicy beside the "
    "template",
)


def decide(kind: Kind, seen: Observed, settings: Settings) -> Decision:
    """Return what follows for a job that is ours to run.

    A job that was stored before admission could judge it is told of and otherwise left alone.
    """
    del kind
    look = _Look(seen, settings)
    job = look.job
    # Whose it is was asked before, and what may be written of that is admission's affair.
    wrong = [str(finding) for finding in judgement.judge(job, replace(settings, job_managed_by=True))]
    if wrong:
        return Decision(events=(EventContent("Warning", _INVALID, shortened("; ".join(wrong))),))
    if look.ledger.is_finished and job.status.get("completionTime") is not None:
        return look.tidied()
    if look.launcher and has_ended(look.launcher):
        return look.ended()
    return look.held() if job.suspended else look.run()


class _Look:
    """One look at a job: its parts by what they are for."""

    def __init__(self, seen: Observed, settings: Settings) -> None:
        self.seen = seen
        self.settings = settings
        self.job = job = MPIJob(seen.job)
        self.ledger = Ledger(job, seen.now)
        self.launcher = _find(seen.others, hosts.launcher_name(job.name), "Job")
        self.launcher_pods = [pod for pod in seen.pods if _role(pod) == names.ROLE_LAUNCHER]
        self.workers = {_name(pod): pod for pod in seen.pods if _role(pod) == names.ROLE_WORKER}
        self.group = _find(seen.others, job.name, common.POD_GROUP)

    def run(self) -> Decision:
        """See to it that there is what the job wants: names, keys and hosts, workers, and then its launcher."""
        job, settings = self.job, self.settings
        wanted = hosts.worker_names(job)
        missing = (index for index, name in enumerate(wanted) if name not in self.workers)
        made = [pods.worker(job, index, settings) for index in islice(missing, MOST_MADE)]
        there = [self.workers[name] for name in wanted if name in self.workers]
        surplus = [self.workers[name] for name in sorted(self.workers.keys() - set(wanted))]
        launcher = self.launcher
        if launcher is None and (not job.launcher_waits or sum(map(_is_ready, there)) == len(wanted)):
            launcher = pods.launcher(job, settings)
            made.append(launcher)
            if trees.text(job.replica(names.LAUNCHER), "template", "spec", "restartPolicy"):
                self.ledger.events.append(_OVERRIDDEN)
        elif launcher is not None and trees.get(launcher, "spec", "suspend") is True:
            surplus.append(launcher)  # mpi-operator's, of before the job resumed: another takes its place
        group = gang.pod_group(job, settings)
        groups = [group] if group and not _holds(self.group, group) else []
        report(self.ledger, Seen(launcher, self.launcher_pods, there, len(wanted)))
        return self._decision(create=made, apply=[*self._network(), *groups], delete=surplus, keys=True)

    def held(self) -> Decision:
        """Stop a suspended job: of its pods none stays, those that ended neither, for others shall take their names."""
        report(self.ledger, Seen(None, self.launcher_pods, (), self.job.workers))
        gone = [*self.workers.values(), *filter(None, (self.launcher, self.group))]
        return self._decision(apply=self._network(), delete=gone, keys=True)

    def ended(self) -> Decision:
        """Write down how the job ended. What is left of it is tidied up by the next look, which knows that it is."""
        report(self.ledger, Seen(self.launcher, self.launcher_pods, (), 0))
        return self._decision()

    def tidied(self) -> Decision:
        """Delete what the job's policy says of the pods of a job that is over."""
        clean = self.job.clean
        if clean == names.CLEAN_NONE:
            return Decision()
        alive = {"Running", "Pending"}
        gone = [pod for pod in self.workers.values() if clean == names.CLEAN_ALL or phase(pod) in alive]
        self.ledger.count(names.WORKER)
        return self._decision(delete=[*gone, *filter(None, (self.group,))])

    def _network(self) -> Iterator[Tree]:
        """Yield the Service and the ConfigMap where they are not as they should be."""
        service = objects.service(self.job)
        if not _holds(_find(self.seen.services, self.job.name), service):
            yield service
        running = [name for name, pod in self.workers.items() if phase(pod) == "Running"]
        config = objects.config(self.job, running, self.settings.cluster_domain)
        if not _holds(_find(self.seen.others, objects.config_name(self.job.name), "ConfigMap"), config):
            yield config

    def _decision(
        self,
        *,
        create: Iterable[Tree] = (),
        apply: Iterable[Tree] = (),
        delete: Iterable[Tree] = (),
        keys: bool = False,
    ) -> Decision:
        secret = objects.keys(self.job)
        is_missing = keys and _find(self.seen.others, secret.name, secret.kind) is None
        return Decision(
            create=tuple(create),
            once=(secret,) if is_missing else (),
            apply=tuple(apply),
            delete=tuple(_ref(one) for one in delete if not is_terminating(one)),
            status=self.ledger.close(),
            events=(*self.ledger.events, *news.of_pods(self.seen.pods)),
        )


def _find(among: Iterable[Tree], name: str, kind: str | None = None) -> Tree | None:
    """Return the object of a name, and of a kind where there are several."""
    return next((one for one in among if _name(one) == name and kind in {None, one.get("kind")}), None)


def _name(tree: Tree) -> str:
    return trees.text(tree, "metadata", "name") or ""


def _role(pod: Tree) -> str | None:
    return trees.text(pod, "metadata", "labels", names.LABEL_JOB_ROLE)


def _ref(tree: Tree) -> Ref:
    uid = trees.text(tree, "metadata", "uid") or ""
    # What comes in a list of pods does not say that it is one.
    return Ref(tree.get("apiVersion") or "v1", tree.get("kind") or "Pod", _name(tree), uid)


def _is_ready(pod: Tree) -> bool:
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in _conditions(pod))


def _conditions(pod: Tree) -> list[Tree]:
    return trees.entries(pod, "status", "conditions")


def _holds(there: Tree | None, wanted: Tree) -> bool:
    """Return whether an object has what is wanted of its content; what else it has is the API server's."""
    return there is not None and all(_covers(there.get(part), wanted.get(part) or {}) for part in ("spec", "data"))


def _covers(there: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_covers(trees.fields(there).get(key), value) for key, value in wanted.items())
    return bool(there == wanted) or (there is None and wanted is False)
