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
from trainplane.api.errors import QuantityError
from trainplane.render.discovery import discover
from trainplane.render.errors import (
    PluginError,
    PluginFailedError,
    PluginRefusedError,
    RegistrationError,
    RenderError,
)
from trainplane.render.findings import Finding, Verdict
from trainplane.render.origin import Marks, Origin, Rendered, trainjob
from trainplane.render.plan import Job, KeptOnce, Runtime
from trainplane.render.plugin import RefusalError
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
from trainplane.render.plugins.volcano import Volcano
from trainplane.render.plugins.xgboost import XGBoost
from trainplane.render.resolve import resolve
from trainplane.render.targets import missing_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan
    from trainplane.render.plugin import Plugin

__all__ = ["COMMON", "FRAMEWORKS", "Job", "Pipeline", "Rendering", "Runtime"]

FRAMEWORKS: Final[tuple[type[Plugin], ...]] = (ShippedCode, PlainML, Torch, MPI, JAX, XGBoost, TensorFlow, Paddle, Flux)
"""Built-in frameworks. First what some of them build on: ShippedCode settles the arguments, PlainML the nodes for those
that leave that to it. Plugins of other packages come after them, in order of their names."""

COMMON: Final[tuple[type[Plugin], ...]] = (Initializers, Coscheduling, Volcano, JobSet)
"""What serves every framework. The JobSet is built last: when it exists, what its pods mount exists too, and the group
that they are scheduled in."""


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """What a TrainJob becomes."""

    objects: tuple[Rendered, ...]
    """Complete bodies for server-side apply, in the order to apply them; the JobSet is the last."""
    kept: tuple[KeptOnce, ...]
    """Objects to create before the others where they are not there yet, and never to change."""
    plan: Plan

    @property
    def jobset(self) -> Rendered:
        """The JobSet."""
        return self.objects[-1]


class Pipeline:
    """An order of plugins."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        """Take the plugins in the order in which they work.

        Raises:
            RegistrationError: two have the same name.
        """
        self.plugins = tuple(plugins)
        known = [plugin.name for plugin in self.plugins]
        for name in known:
            if known.count(name) > 1:
                raise RegistrationError(Finding(name, "two plugins have this name: uninstall or rename one"))
        self._authors = tuple((plugin, Origin("plugin", plugin.name)) for plugin in self.plugins)

    @classmethod
    def default(cls) -> Pipeline:
        """Return the built-in plugins and, after the built-in frameworks, those of installed packages.

        Raises:
            RegistrationError: an entry point of `trainplane.plugins` cannot be loaded or is no plugin.
        """
        built_in = [plugin() for plugin in FRAMEWORKS], [plugin() for plugin in COMMON]
        return cls([*built_in[0], *discover(), *built_in[1]])

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
            plan.pen.origin = author
            try:
                plugin.enforce(plan)
            except Exception as error:
                raise _blame(plugin, error) from error

    def render(self, job: Job, runtime: Runtime) -> Rendering:
        """Return the objects that the TrainJob becomes. The job and the runtime are not changed.

        Raises:
            RenderError: see `errors`.
        """
        return self._build(self.plan(job, runtime))

    def _build(self, plan: Plan) -> Rendering:
        objects: list[Rendered] = []
        kept: list[KeptOnce] = []
        for plugin, author in self._authors:
            plan.pen.origin = author
            try:
                for made in plugin.build(plan):
                    if isinstance(made, KeptOnce):
                        kept.append(made)
                    else:
                        objects.append(_owned(made, plan, author))
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
        patches = trees.get(job.tree, "spec", "runtimePatches") or ()
        template = trees.get(runtime.tree, "spec", "template") or {}
        lost = Verdict(tuple(missing.finding for missing in missing_targets(patches, template)))
        try:
            plan = resolve(job.drop("spec", "runtimePatches") if lost.errors else job, runtime)
        except RenderError as error:
            return Verdict((error.finding,))
        verdict = lost + Verdict.of(remark for plugin in self.plugins for remark in _remarks(plugin, plan, old))
        return verdict if verdict.errors else verdict + self._rehearse(plan)

    def _rehearse(self, plan: Plan) -> Verdict:
        """Render the plan that was judged: judging reads, so it is as good as a new one."""
        try:
            self._enforce(plan)
            self._build(plan)
        except RenderError as error:
            return Verdict((error.finding,))
        return Verdict()


def _remarks(plugin: Plugin, plan: Plan, old: Job | None) -> Iterator[Finding | str]:
    try:
        yield from plugin.validate(plan, old)
    except Exception as error:  # noqa: BLE001 as above
        yield _blame(plugin, error).finding


def _blame(plugin: Plugin, error: Exception) -> PluginError:
    if isinstance(error, RefusalError):
        return PluginRefusedError(plugin.name, Finding(error.path, error.problem))
    if isinstance(error, QuantityError):
        return PluginRefusedError(plugin.name, Finding("spec.trainer.resourcesPerNode", f"or the runtime's: {error}"))
    problem = f"plugin {plugin.name} broke ({type(error).__name__}: {error}): report it to its author"
    return PluginFailedError(plugin.name, Finding("spec.runtimeRef", problem, "InternalError"))


def _owned(made: Tree | Rendered, plan: Plan, author: Origin) -> Rendered:
    """Complete an object: it stands in the TrainJob's namespace, belongs to it, and is deleted with it."""
    rendered = made if isinstance(made, Rendered) else Rendered(trees.copy(made), Marks(author))
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
    rendered.marks.fields(metadata, ("namespace", "ownerReferences"), trainjob("metadata"))
    return rendered
