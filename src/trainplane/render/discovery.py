"""Finds plugins of other packages: entry points of the group `trainplane.plugins`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from trainplane.render.errors import RegistrationError
from trainplane.render.findings import Finding
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "trainplane.plugins"


def discover() -> list[Plugin]:
    """Return one of each installed plugin, in order of their names.

    An entry point names a class (or any callable) that makes a plugin without arguments.

    Raises:
        RegistrationError: one cannot be imported, made, or is no plugin. Nothing is left out in silence: a TrainJob
            must not train without what its runtime counts on.
    """
    found = [_load(entry) for entry in entry_points(group=GROUP)]
    return sorted(found, key=lambda plugin: plugin.name)


def _load(entry: EntryPoint) -> Plugin:
    source = f"{entry.name} = {entry.value}"
    if entry.dist is not None:
        source += f" (package {entry.dist.name} {entry.dist.version})"
    try:
        plugin = entry.load()()
    except Exception as error:
        problem = f"the plugin cannot be loaded ({type(error).__name__}: {error}): repair or uninstall its package"
        raise RegistrationError(Finding(source, problem)) from error
    if not isinstance(plugin, Plugin) or not isinstance(getattr(plugin, "name", None), str):
        problem = f"makes a {type(plugin).__name__}, which is no trainplane.render.plugin.Plugin with a name"
        raise RegistrationError(Finding(source, problem))
    return plugin
