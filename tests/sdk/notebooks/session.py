"""A person's notebook: cells that run in a kernel of their own, with a home, a cluster and a namespace."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import yaml
from nbclient import NotebookClient

from lab.engines import binary

if TYPE_CHECKING:
    from lab.cluster import Cluster

CELL_SECONDS = 300
"""How long a cell may take on a busy machine of two cores."""


@dataclass(frozen=True)
class Home:
    """Where a person works: the working directory is the home directory."""

    folder: Path
    kubeconfig: Path

    @classmethod
    def of(cls, cluster: Cluster, namespace: str, folder: Path) -> Home:
        """Make a home whose kubectl, and so whose client, uses a namespace of a cluster."""
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        for entry in config["contexts"]:
            entry["context"]["namespace"] = namespace
        path = folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return cls(folder, path)

    def environment(self) -> dict[str, str]:
        """Return the variables of the kernel: those of this process, as far as they say nothing of its home."""
        path = f"{Path(binary('kubectl')).parent}:{os.environ['PATH']}"
        own = {"HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig), "PATH": path}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TRAINPLANE_"))}
        return {**inherited, **own, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def run_notebook(notebook: Any, home: Home) -> Any:
    """Run all cells and return the notebook with what they showed; a cell that raises fails the caller."""
    place = {"metadata": {"path": str(home.folder)}}
    client = NotebookClient(notebook, timeout=CELL_SECONDS, kernel_name="python3", resources=place)
    return client.execute(env=home.environment())


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def notebook_of(sources: list[str]) -> Any:
    """Return a notebook of these cells."""
    v4: Any = nbformat.v4
    return v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])


def printed(cell: Any) -> str:
    """Return what a cell printed."""
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


def shown(cell: Any) -> list[str]:
    """Return the HTML that stands below a cell."""
    return [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
