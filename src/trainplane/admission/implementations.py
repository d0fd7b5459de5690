"""Which MPI is in a runtime's image, in the form to store: OpenMPI, and beside it the annotation of any other.

Documents write `mpiImplementation: IntelMPI`. The trainer's Go code knows OpenMPI alone: Kueue, which makes pods of a
runtime with it, would count none of its TrainJobs. What the field says goes before an annotation that is there: whoever
applies a file again with another word has never seen the annotation.

Doing it twice is doing it once. What runs here has not been validated: what is of a wrong type is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.admission.defaulting import Defaulted
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.runtime import MPI_SPELLINGS, OPENMPI

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_PATH: Final = ("spec", "mlPolicy", "mpi", "mpiImplementation")


def default_runtime(new: Tree) -> Defaulted:
    """Return a runtime of either kind in the form to store."""
    said = trees.get(new, *_PATH)
    meant = MPI_SPELLINGS.get(said) if isinstance(said, str) else None
    metadata = new.get("metadata")
    annotations = (metadata.get("annotations") or {}) if isinstance(metadata, dict) else None
    if meant is None or not isinstance(annotations, dict):
        return Defaulted(new)
    tree = trees.put(new, *_PATH, value=OPENMPI)
    marked = {**annotations, names.ANNOTATION_MPI_IMPLEMENTATION: meant}
    warning = (
        f"{'.'.join(_PATH)}: {said} is stored as {OPENMPI}, which is all that Kueue reads, with the annotation "
        f"{names.ANNOTATION_MPI_IMPLEMENTATION}: {meant}. For {OPENMPI} again, take that away"
    )
    return Defaulted(trees.put(tree, "metadata", "annotations", value=marked), (warning,))
