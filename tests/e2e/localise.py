"""Documents as users write them, turned into what the lab can run: images, programs and amounts it has.

Everything else stays as written. A program that the lab's images lack becomes a small one that prints the arguments
and variables it was given, which `reports` reads back from the logs.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import yaml

from lab.images import reference as image
from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Tree = dict[str, Any]

EXAMPLES = REPOSITORY / "examples/trainjobs"
AMOUNTS = {"cpu": "10m", "memory": "64Mi"}
"""What a pod requests here instead of what a training would; GPUs stay, since the node offers them."""
PROBE_SECONDS = {"initialDelaySeconds": 1, "periodSeconds": 1}

REPORT = "import json, os, sys; print(json.dumps({'args': sys.argv[1:], 'env': dict(os.environ)}))"


def example(name: str, *, image_name: str = "python", programs: Mapping[str, str] | None = None) -> list[Tree]:
    """Return the documents of an example; `programs` gives containers by name what to run instead of `REPORT`."""
    documents = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
    return [localised(document, image_name=image_name, programs=programs or {}) for document in documents]


def localised(document: Tree, *, image_name: str, programs: Mapping[str, str]) -> Tree:
    document = copy.deepcopy(document)
    if document["kind"] == "TrainJob":
        _localise_trainer(document["spec"].get("trainer", {}), image_name)
    for pod in _pods(document):
        # Nothing here needs time to end, and a test that suspends should not wait for it.
        pod["terminationGracePeriodSeconds"] = 0
        for container in pod["containers"]:
            _localise_container(container, image_name, programs)
    return document


def reports(lines: Iterable[str]) -> list[Tree]:
    """Return what `REPORT` printed, one entry for each pod."""
    return [json.loads(line) for line in lines if line.startswith('{"args"')]


def _pods(document: Tree) -> Iterator[Tree]:
    for job in document.get("spec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", []):
        yield job["template"]["spec"]["template"]["spec"]


def _localise_trainer(trainer: Tree, image_name: str) -> None:
    if "image" in trainer:
        trainer["image"] = image(image_name)
    if "command" in trainer and not _runs_here(trainer["command"], image_name):
        trainer["command"] = ["python3", "-c", REPORT]
    _scale(trainer.get("resourcesPerNode", {}))


def _localise_container(container: Tree, image_name: str, programs: Mapping[str, str]) -> None:
    container["image"] = image(image_name)
    container["imagePullPolicy"] = "Never"
    if container["name"] in programs:
        container["command"] = ["python3", "-c", programs[container["name"]]]
    elif container.get("command", [])[:2] == ["/bin/bash", "-c"]:
        # The lab's images have no pip.
        container["command"][2] = container["command"][2].replace("pip list", "python3 --version")
    else:
        container["command"] = ["python3", "-c", REPORT]
    if "readinessProbe" in container:
        container["readinessProbe"] |= PROBE_SECONDS
    _scale(container.get("resources", {}))


def _runs_here(command: list[str], image_name: str) -> bool:
    return image_name == "torch" and command[0] == "torchrun"


def _scale(resources: Tree) -> None:
    requests = resources.get("requests", {})
    requests |= {name: AMOUNTS[name] for name in requests.keys() & AMOUNTS.keys()}
