"""What the API server asks of a conversion webhook, and the answer. Pure: the route is the operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.mpi.conversion import V1, V2BETA1, converted

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"
_VERSIONS: Final = (V1, V2BETA1)


def answered(review: Any) -> Tree:
    """Return the review with its answer: all objects in the version that is wanted, or why there is none.

    Objects stand in the answer as they stood in the question. One that cannot be converted fails all, as the API server
    would not know what to do with the rest.
    """
    request = trees.fields(review, "request")
    wanted, objects = request.get("desiredAPIVersion"), request.get("objects")
    problem = _problem(wanted, objects)
    answer: Tree = {"uid": trees.text(request, "uid") or ""}
    if problem:
        answer["result"] = {"status": "Failure", "message": problem}
    else:
        answer["convertedObjects"] = [converted(one, str(wanted)) for one in objects or ()]
        answer["result"] = {"status": "Success"}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": answer}


def _problem(wanted: Any, objects: Any) -> str | None:
    if wanted not in _VERSIONS:
        return f"an {MPI.name} is of {' or '.join(_VERSIONS)}, and another version was asked for"
    if not isinstance(objects, list):
        return "there is no list of objects to convert"
    for place, one in enumerate(objects):
        if not isinstance(one, dict) or one.get("kind") != MPI.name or one.get("apiVersion") not in _VERSIONS:
            return f"object {place} is no {MPI.name} of {' or '.join(_VERSIONS)}"
    return None
