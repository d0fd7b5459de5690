"""From a TrainJob and its runtime to objects: resolve, then each plugin in one declared order.

    runtime ─► patches ─► TrainJob ─► Plan ─► enforce (each plugin) ─► build (each plugin) ─► Rendering
              └──────── resolve ────────┘

The order is a list, so the same TrainJob renders the same way in every process. An error names its plugin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.bounds import MOST_PODS, too_deep
from trainplane.api.errors import QuantityError
from trainplane.render.amounts import MOST_AMOUNTS, count_amounts
from trainplane.render.discovery import discover
from trainplane.render.errors import (
    PluginError,
    PluginFailedError,
    PluginRefusedError,
    RegistrationError,
    RenderError,
    TooLargeError,
)
from trainplane.render.findings import Finding, Verdict
from trainplane.render.plan import CreateOnce, Job, Runtime
from trainplane.render.plugin import RefusalError
from trainplane.render.plugins.cache import Cache, SharedCache
from trainplane.render.plugins.claims import Claims
from trainplane.render.plugins.coscheduling import Coscheduling
from trainplane.render.plugins.flux import Flux
from trainplane.render.plugins.initializers import Initializers
from trainplane.render.plugins.jax import JAX
from trainplane.render.plugins.jobset import JobSet
from trainplane.render.plugins.mpi import MPI
from trainplane.render.plugins.paddle import Paddle
from trainplane.render.plugins.plainml import PlainML
from trainplane.render.plugins.shipped import ShippedCode
from trainplane.render.plugins.tensorflow import TensorFlow
from trainplane.render.plugins.torch import Torch
from trainplane.render.plugins.torchrun import Torchrun
from trainplane.render.plugins.volcano import Volcano
from trainplane.render.plugins.xgboost import XGBoost
from trainplane.render.provenance import Origin, Provenance, Rendered, trainjob
from trainplane.render.refused import judge_refused
from trainplane.render.resolve import resolve
from trainplane.render.targets import missing_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan
    from trainplane.render.plugin import Plugin

__all__ = ["COMMON", "FRAMEWORKS", "Job", "Pipeline", "Rendering", "Runtime"]

FRAMEWORKS: Final[tuple[type[Plugin], ...]] = (
    ShippedCode,
    PlainML,
    Torch,
    Torchrun,
    MPI,
    JAX,
    XGBoost,
    TensorFlow,
    Paddle,
    Flux,
)
"""Built-in frameworks. First what some of them build on: ShippedCode settles the arguments, PlainML the nodes for those
that leave that to it. Plugins of other packages come after them, in order of their names."""

COMMON: Final[tuple[type[Plugin], ...]] = (
    Initializers,
    Cache,
    SharedCache,
    Claims,
    Coscheduling,
    Volcano,
    JobSet,
)
"""What serves every framework. A cache is told what to fetch before it is made as large as that says. The JobSet is
built last: when it exists, what its pods mount exists too, and the group that they are scheduled in."""


_COUNTABLE: Final = 10**18
"""Numbers above it are not written out."""


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """What a TrainJob becomes."""

    objects: tuple[Rendered, ...]
    """Complete bodies for server-side apply, in the order to apply them; the JobSet is the last."""
    kept: tuple[CreateOnce, ...]
    """Objects to create before the others where they are not there yet, and never to change."""
    plan: Plan

    @property
    def jobset(self) -> Rendered:
        """The JobSet."""
        return self.objects[-1]


class Pipeline:
    """An order of plugins, and how many pods a TrainJob may come to."""

    def __init__(self, plugins: Iterable[Plugin], *, most_pods: int = MOST_PODS) -> None:
        """Take the plugins in the order in which they work.

        Raises:
            RegistrationError: two have the same name.
        """
        self.plugins = tuple(plugins)
        self.most_pods = most_pods
        known = [plugin.name for plugin in self.plugins]
        for name in known:
            if known.count(name) > 1:
                raise RegistrationError(Finding(name, "two plugins have this name: uninstall or rename one"))
        self._authors = tuple((plugin, Origin("plugin", plugin.name)) for plugin in self.plugins)

    @classmethod
    def default(cls, *, most_pods: int = MOST_PODS, also: Iterable[Plugin] = ()) -> Pipeline:
        """Return the built-in plugins and, after the built-in frameworks, those of installed packages.

        `also` are plugins that need to know something of where they run, such as the operator's; they come after the
        frameworks, too; one that has the name of a built-in stands in its place.

        Raises:
            RegistrationError: an entry point of `trainplane.plugins` cannot be loaded or is no plugin.
        """
        given = {plugin.name: plugin for plugin in also}
        frameworks = [plugin() for plugin in FRAMEWORKS]
        common = [given.pop(plugin.name) if plugin.name in given else plugin() for plugin in COMMON]
        return cls([*frameworks, *discover(), *given.values(), *common], most_pods=most_pods)

    def without(self, *names: str) -> Pipeline:
        """Return the same plugins without those of some names; itself if it has none of them."""
        kept = [plugin for plugin in self.plugins if plugin.name not in names]
        return self if len(kept) == len(self.plugins) else Pipeline(kept, most_pods=self.most_pods)

    def plan(self, job: Job, runtime: Runtime) -> Plan:
        """Return the plan with every plugin's writes in it.

        Raises:
            RenderError: see `errors`.
        """
        plan = resolve(job, runtime)
        self._enforce(plan)
        return plan

    def _enforce(self, plan: Plan) -> None:
        for plugin, author in self._authors:
            plan.writer.origin = author
            try:
                plugin.enforce(plan)
            except RenderError:
                raise
            except Exception as error:
                raise _blame(plugin, error) from error

    def render(self, job: Job, runtime: Runtime, *, begins: bool = False) -> Rendering:
        """Return the objects that the TrainJob becomes. The job and the runtime are not changed.

        A TrainJob that `begins` may not come to more pods than a TrainJob may have. One that has begun goes on,
        whatever the bound is by now.

        Raises:
            RenderError: see `errors`.
        """
        plan = self.plan(job, runtime)
        if begins:
            self._judge_pods(plan)
        return self._build(plan)

    def _judge_pods(self, plan: Plan) -> None:
        pods = sum(max(pod_set.replicas, 0) * max(pod_set.count, 0) for pod_set in plan.pod_sets)
        if pods > self.most_pods:
            raise TooLargeError(too_many_pods("spec.runtimeRef", pods, self.most_pods))

    def _build(self, plan: Plan) -> Rendering:
        _judge_amounts(plan)
        objects: list[Rendered] = []
        kept: list[CreateOnce] = []
        for plugin, author in self._authors:
            plan.writer.origin = author
            try:
                for made in plugin.build(plan):
                    if isinstance(made, CreateOnce):
                        kept.append(made)
                    else:
                        objects.append(_owned(made, plan, author))
            except RenderError:
                raise
            except Exception as error:
                raise _blame(plugin, error) from error
        return Rendering(tuple(objects), tuple(kept), plan)

    def validate(self, job: Job, old: Job | None, runtime: Runtime) -> Verdict:
        """Return what is wrong with the TrainJob on this runtime.

        Every rule that speaks of the TrainJob against its runtime is judged here: initializers, targets of
        runtimePatches (against the runtime as it stands, patches not merged), variables that a patch may not set, torch
        and torchtune. If they find nothing, the TrainJob is rendered, and an error of that is a finding too: what is
        allowed can be rendered.

        Left to admission: the form of `runtimePatches[].manager`; who may change `runtimePatches` when (suspended
        before or after, JobSet not active); immutable fields added or removed; length of names; that the runtime
        exists, its kind, its deprecation.

        Never raises for what a user wrote; a plugin that breaks is a finding with cause InternalError.
        """
        verdict = Verdict() if old else self._judge_nodes(job)
        lost = _lost_targets(job, runtime)
        try:
            plan = resolve(job.drop("spec", "runtimePatches") if lost.errors else job, runtime)
        except RenderError as error:
            return verdict + Verdict((error.finding,))
        verdict += lost + Verdict.of(remark for plugin in self.plugins for remark in _remarks(plugin, plan, old))
        if verdict.errors:
            return verdict
        rehearsed = self._rehearse(plan, begins=old is None)
        if rehearsed.errors and old is not None:
            rehearsed = _new_of(rehearsed, self._refused(old, runtime))
        return verdict + rehearsed

    def _judge_nodes(self, job: Job) -> Verdict:
        """Judge the nodes that a new TrainJob asks for, before anybody makes a list of them."""
        nodes = job.view.spec.trainer.num_nodes if job.view.spec.trainer else None
        if nodes is None or nodes <= self.most_pods:
            return Verdict()
        return Verdict((too_many_pods("spec.trainer.numNodes", nodes, self.most_pods),))

    def _rehearse(self, plan: Plan, *, begins: bool) -> Verdict:
        """Render the plan that was judged (judging reads, so it is as good as a new one), and judge what came out."""
        try:
            self._enforce(plan)
            if begins:
                self._judge_pods(plan)
            jobset = self._build(plan).jobset
        except RenderError as error:
            return Verdict((error.finding,))
        try:
            return Verdict(tuple(judge_refused(jobset)))
        except (AttributeError, TypeError) as error:
            problem = f"the runtime's template does not have the form of a JobSet: {error}"
            return Verdict((Finding("spec.runtimeRef", problem),))

    def _refused(self, job: Job, runtime: Runtime) -> Verdict:
        """Return what is wrong with a TrainJob that is stored already."""
        try:
            return self._rehearse(resolve(job, runtime), begins=False)
        except RenderError as error:
            return Verdict((error.finding,))


def _new_of(verdict: Verdict, known: Verdict) -> Verdict:
    """Return the findings that were not there before: an update is judged for what it changes."""
    before = set(known.errors)
    return Verdict(tuple(one for one in verdict.errors if one not in before), verdict.warnings)


def too_many_pods(path: str, pods: int, most: int) -> Finding:
    """Return what is wrong with a TrainJob or runtime that comes to more pods than a TrainJob may have."""
    count = str(pods) if pods < _COUNTABLE else f"more than {_COUNTABLE}"
    return Finding(
        path,
        f"comes to {count} pods, and a TrainJob may have {most}: ask for fewer. An admin sets the bound as "
        "limits.podsPerTrainJob in the operator's configuration file",
    )


def _judge_amounts(plan: Plan) -> None:
    amounts = count_amounts(plan.template.tree.get("spec") or {})
    if amounts > MOST_AMOUNTS:
        problem = f"with its runtime, comes to {amounts} amounts of resources, and a JobSet may have {MOST_AMOUNTS}"
        raise TooLargeError(Finding("spec", f"{problem}: ask for fewer kinds, or use a runtime with fewer containers"))


def _lost_targets(job: Job, runtime: Runtime) -> Verdict:
    """Judge whether the runtime has what patches speak of."""
    patches = trees.get(job.tree, "spec", "runtimePatches") or ()
    template = trees.get(runtime.tree, "spec", "template") or {}
    try:
        return Verdict.of(missing.finding for missing in missing_targets(patches, template))
    except (AttributeError, TypeError):
        return Verdict()  # a template that has no form of one: resolving says so


def _remarks(plugin: Plugin, plan: Plan, old: Job | None) -> Iterator[Finding | str]:
    try:
        yield from plugin.validate(plan, old)
    except RenderError as error:
        yield error.finding
    except Exception as error:  # noqa: BLE001 as above
        yield _blame(plugin, error).finding


def _blame(plugin: Plugin, error: Exception) -> PluginError:
    if isinstance(error, RecursionError):
        return PluginRefusedError(plugin.name, Finding("spec", f"with its runtime, {too_deep()}"))
    if isinstance(error, RefusalError):
        return PluginRefusedError(plugin.name, Finding(error.path, error.problem))
    if isinstance(error, QuantityError):
        return PluginRefusedError(plugin.name, Finding("spec.trainer.resourcesPerNode", f"or the runtime's: {error}"))
    problem = f"plugin {plugin.name} broke ({type(error).__name__}: {error}): report it to its author"
    return PluginFailedError(plugin.name, Finding("spec.runtimeRef", problem, "InternalError"))


def _owned(made: Tree | Rendered, plan: Plan, author: Origin) -> Rendered:
    """Complete an object: it stands in the TrainJob's namespace, belongs to it, and is deleted with it."""
    rendered = made if isinstance(made, Rendered) else Rendered(trees.copy(made), Provenance(author))
    metadata = rendered.tree["metadata"]
    reference = {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "name": plan.name,
        "uid": plan.job.view.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata.update(namespace=plan.namespace, ownerReferences=[reference])
    rendered.provenance.fields(metadata, ("namespace", "ownerReferences"), trainjob("metadata"))
    return rendered
