"""What a plugin is: a name and up to three hooks, each of which does nothing unless a plugin says otherwise.

    class Dask(Plugin):
        name = "Dask"

        def enforce(self, plan): ...          change the plan: counts, variables, volumes
        def build(self, plan): ...            objects beside the JobSet
        def validate(self, plan, old): ...    what is wrong with the TrainJob

A plugin decides for itself whether it is meant, usually by `plan.policy` or by a label of the runtime. It is made once
and used for every TrainJob, so it keeps no state; it does no I/O, reads no clock and draws no random number (what must
be drawn once and kept is asked for with `CreateOnce`). It knows no other plugin. `docs/plugins.md` leads through one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.findings import Finding
    from trainplane.render.plan import CreateOnce, Plan
    from trainplane.render.provenance import Rendered


class RefusalError(Exception):
    """Raised by a hook: what the TrainJob or the runtime asks for cannot be. The pipeline adds the plugin's name."""

    def __init__(self, path: str, problem: str) -> None:
        """Name the field and say what is wrong with it and what to write instead."""
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class Plugin:
    """Base of all plugins."""

    name: ClassVar[str]
    """What errors and origins call the plugin; unique among the installed."""

    def enforce(self, plan: Plan) -> None:
        """Write into the plan what this plugin is for. Called in the pipeline's order; later plugins see the writes."""

    def build(self, plan: Plan) -> Iterable[Tree | Rendered | CreateOnce]:  # noqa: ARG002 a hook's arguments are its interface
        """Return objects to apply before the JobSet; called when every plugin has written into the plan.

        Give `apiVersion`, `kind`, `metadata.name` and the content; namespace and owner are filled in.
        """
        return ()

    def validate(
        self,
        plan: Plan,  # noqa: ARG002 as above
        old: Document[TrainJob] | None,  # noqa: ARG002 as above
    ) -> Iterable[Finding | str]:
        """Return what is wrong with the TrainJob: a finding refuses it, a text warns.

        `plan` is resolved and no plugin has written into it. `old` is what the TrainJob was before an update.
        """
        return ()
