"""Objects for programs, as `kubectl get -o` prints them: JSON, YAML, or names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.cli.output import Output

FOR_PROGRAMS: Final = frozenset({"json", "yaml", "name"})
"""The forms of `--output` that show objects as the API server has them."""


def show_object(tree: dict[str, Any], form: str, output: Output) -> None:
    """Print one object."""
    if form == "name":
        output.line(_name(tree))
    elif form == "yaml":
        output.yaml(tree)
    else:
        output.json(tree)


def show_objects(trees: Sequence[dict[str, Any]], form: str, output: Output) -> None:
    """Print a list of objects."""
    if form == "name":
        for tree in trees:
            output.line(_name(tree))
    else:
        show_object({"apiVersion": "v1", "kind": "List", "items": list(trees)}, form, output)


def _name(tree: dict[str, Any]) -> str:
    """Return what kubectl takes for an object: `trainjob.trainer.kubeflow.org/mnist`."""
    group, separator, _ = str(tree["apiVersion"]).rpartition("/")
    return f"{str(tree['kind']).lower()}{'.' if separator else ''}{group}/{tree['metadata']['name']}"
