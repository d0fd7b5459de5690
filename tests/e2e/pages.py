"""What the pages of frameworks show: their runtime and TrainJob, and what they add to a runtime for a purpose.

Of the documents only images change, to the lab's, and what an image calls Python.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from lab.images import reference as image
from lab.paths import REPOSITORY

_PAGES: Final = REPOSITORY / "docs/frameworks"
_RUNTIMES: Final = REPOSITORY / "runtimes"
_BLOCK: Final = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)

Tree = dict[str, Any]


def documents(page: str, image_name: str) -> tuple[Tree, Tree]:
    """Return the runtime and the TrainJob of a page: the runtime stands there, or is one that we ship."""
    whole = [block for block in _blocks(page) if "kind" in block]
    (job,) = (block for block in whole if block["kind"] == "TrainJob")
    runtime = next((block for block in whole if block["kind"] == "ClusterTrainingRuntime"), None)
    if runtime is None:
        runtime = yaml.safe_load((_RUNTIMES / f"{job['spec']['runtimeRef']['name']}.yaml").read_text())
    for replicated in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = replicated["template"]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = 0
        for container in pod["containers"]:
            container |= {"image": image(image_name), "imagePullPolicy": "Never"}
    trainer = job["spec"]["trainer"]
    trainer["command"] = ["python3" if word == "python" else word for word in trainer["command"]]
    return runtime, job


def additions(page: str) -> list[Tree]:
    """Return the parts of a runtime that a page shows by themselves, in their order."""
    return [block for block in _blocks(page) if "kind" not in block]


def with_addition(have: Any, addition: Any) -> Any:
    """Return a document with what a page adds to it: entries of lists are those of the same name, as a reader reads."""
    if isinstance(have, dict) and isinstance(addition, dict):
        return have | {key: with_addition(have.get(key), value) for key, value in addition.items()}
    if isinstance(have, list) and isinstance(addition, list) and _named(have + addition):
        added = {entry["name"]: entry for entry in addition}
        changed = [with_addition(entry, added.pop(entry["name"], {})) for entry in have]
        return [*changed, *added.values()]
    return addition


def _named(entries: list[Any]) -> bool:
    return all(isinstance(entry, dict) and "name" in entry for entry in entries)


def _blocks(page: str) -> list[Tree]:
    texts = _BLOCK.findall((_PAGES / f"{page}.md").read_text())
    blocks = (block for text in texts for block in yaml.safe_load_all(text))
    return [block for block in blocks if isinstance(block, dict)]
