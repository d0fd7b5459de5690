"""What can go wrong in `render`.

```
RenderError
├── ResolveError           the runtime and the TrainJob make no plan: a field has another form           user
├── PatchError             a runtimePatches entry cannot be merged into the runtime's template           user
├── TooLargeError          the TrainJob comes to more pods, or to a larger JobSet, than it may           user
├── PluginError            a plugin could not do its part; `plugin` is its name
│   ├── PluginRefusedError     what the TrainJob or the runtime asks for cannot be                       user
│   └── PluginFailedError      the plugin broke: a bug in it                                             ours
└── RegistrationError      the set of plugins cannot be: a name twice, an entry point that is no plugin  admin
```

Rendering is pure, so nothing becomes right by trying again: none is retryable until someone changes the TrainJob, the
runtime or the installation. `whose` says who; `finding` says it of a field where the user is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from trainplane.render.findings import Finding

Whose: TypeAlias = Literal["user", "admin", "ours"]


class RenderError(Exception):
    """A TrainJob and a runtime could not be rendered."""

    retryable: ClassVar[bool] = False
    whose: ClassVar[Whose] = "user"

    def __init__(self, finding: Finding) -> None:
        """Keep the finding; the message is its text."""
        super().__init__(str(finding))
        self.finding = finding


class ResolveError(RenderError):
    """The runtime and the TrainJob make no plan."""


class PatchError(RenderError):
    """A runtimePatches entry cannot be merged; `manager` made it."""

    def __init__(self, manager: str, finding: Finding) -> None:
        """Name the entry by its manager."""
        super().__init__(finding)
        self.manager = manager


class TooLargeError(RenderError):
    """The TrainJob comes to more than it may; nothing of it was made."""


class PluginError(RenderError):
    """A plugin could not do its part."""

    def __init__(self, plugin: str, finding: Finding) -> None:
        """Name the plugin, in the message too."""
        super().__init__(finding)
        self.plugin = plugin

    def __str__(self) -> str:
        return f"{self.finding} (plugin {self.plugin})"


class PluginRefusedError(PluginError):
    """What the TrainJob or the runtime asks for cannot be."""


class PluginFailedError(PluginError):
    """The plugin broke: report it to whoever wrote it. The cause is chained."""

    whose = "ours"


class RegistrationError(RenderError):
    """The set of installed plugins cannot be used."""

    whose = "admin"
