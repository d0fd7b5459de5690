"""What the API server refuses in the Jobs of a JobSet, told while the TrainJob is being written.

JobSet makes Jobs of what we render. If the API server refuses one, JobSet tries again for ever, and whoever wrote the
TrainJob hears nothing, while its queue holds quota for it. So what people get wrong is judged here by the API server's
own rules (Kubernetes 1.36), in what was rendered, and told of the field that said it: of a patch, of `spec.trainer`, or
of the runtime. A rule that is missing here is judged there, as before; one that is stricter would be a fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api.jobset import JobSetTemplate
from trainplane.render.failurepolicy import wrong_rules
from trainplane.render.findings import Finding
from trainplane.render.references import POD, lost_jobs, lost_volumes
from trainplane.render.resources import impossible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.jobset import Container, ReplicatedJob
    from trainplane.api.tree import Tree
    from trainplane.render.provenance import Rendered
    from trainplane.render.references import Fault

Path = tuple[str | int, ...]

OF_RUNTIME: Final = "the runtime's spec.template"
"""How a finding begins that only the runtime's author can mend."""
_WORD: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_KEY: Final = re.compile(rf"((?=[^/]{{1,253}}/){_LABEL}(\.{_LABEL})*/)?{_WORD}")
_VALUE: Final = re.compile(rf"({_WORD})?")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")
_LONGEST_LABEL: Final = 63
_EFFECTS: Final = frozenset({"", "NoSchedule", "PreferNoSchedule", "NoExecute"})
_TOLERATING: Final = frozenset({"", "Equal", "Exists", "Lt", "Gt"})
_RESTARTS: Final = frozenset({None, "", "OnFailure", "Never"})
_TEMPLATE: Final = ("template", "metadata")
_POD_TEMPLATE: Final = ("template", "spec", "template", "metadata")


def judge_refused(jobset: Rendered) -> Iterator[Finding]:
    """Yield a finding for each part of a rendered JobSet for which JobSet or the API server would refuse it."""
    for path, problem in faults(jobset.tree):
        yield _told(jobset, path, problem)


def _told(jobset: Rendered, path: Path, problem: str) -> Finding:
    """Return a fault in the words of whoever can mend it."""
    origin = jobset.origin_of(*_as_far_as_there(jobset.tree, path))
    if origin.source == "patch":
        return Finding(
            f"spec.runtimePatches[manager={origin.name}].trainingRuntimeSpec.template{_written(jobset.tree, path)}",
            problem,
        )
    if origin.source == "trainjob":
        return Finding(origin.path, problem)
    return Finding("spec.runtimeRef", f"{OF_RUNTIME}{_written(jobset.tree, path)}: {problem}")


def _as_far_as_there(tree: Any, path: Path) -> Path:
    """Return the part of a path that leads to something: what is missing was left out by whoever wrote around it."""
    for depth, step in enumerate(path):
        if not (step in tree if isinstance(tree, dict) else isinstance(step, int)):
            return path[:depth]
        tree = tree[step]
    return path


def _written(tree: Any, path: Path) -> str:
    """Return a path as messages have it, entries of lists by their names."""
    text = ""
    for step in path:
        below = tree[step] if isinstance(tree, list) else tree.get(step) if isinstance(tree, dict) else None  # type: ignore[index] # an int
        if isinstance(step, int):
            name = below.get("name") if isinstance(below, dict) else None
            text += f"[name={name}]" if isinstance(name, str) else f"[{step}]"
        else:
            text += f"[{step}]" if "." in step or "/" in step else f".{step}"
        tree = below
    return text


def faults(tree: Tree) -> Iterator[Fault]:
    """Yield what is wrong with a JobSet, or with a template of one."""
    yield from lost_jobs(tree)
    yield from wrong_rules(tree)
    yield from lost_volumes(tree)
    yield from _metadata(tree.get("metadata") or {}, ("metadata",))
    for index, job in enumerate(JobSetTemplate(tree).jobs):
        at: Path = ("spec", "replicatedJobs", index)
        for place in (_TEMPLATE, _POD_TEMPLATE):
            yield from _metadata(job.get(*place) or {}, (*at, *place))
        yield from _pod(job, (*at, *POD))


def _metadata(metadata: Tree, at: Path) -> Iterator[Fault]:
    yield from _labels(metadata.get("labels") or {}, (*at, "labels"))
    for key in metadata.get("annotations") or {}:
        if not _KEY.fullmatch(key.lower()):
            yield (*at, "annotations", key), _no_key(key)


def _labels(labels: Tree, at: Path) -> Iterator[Fault]:
    for key, value in labels.items():
        if not _KEY.fullmatch(key):
            yield (*at, key), _no_key(key)
        elif not (isinstance(value, str) and _VALUE.fullmatch(value)):
            problem = f"{value!r} is no value of a label: write up to 63 letters, digits, -, _ and ., or an annotation"
            yield (*at, key), problem


def _no_key(key: str) -> str:
    return f"{key!r} is no key: write one such as example.com/team"


def _pod(job: ReplicatedJob, at: Path) -> Iterator[Fault]:
    spec = job.pod_spec
    if not job.containers:
        yield (*at, "containers"), "is missing: a pod has one container or more"
    account = spec.get("serviceAccountName")
    if account and not _SUBDOMAIN.fullmatch(account):
        yield (*at, "serviceAccountName"), f"{account!r} is no name: write small letters, digits, - and ."
    if spec.get("restartPolicy") not in _RESTARTS:
        yield (*at, "restartPolicy"), f"must be Never or OnFailure in a Job, not {spec['restartPolicy']}"
    yield from _labels(spec.get("nodeSelector") or {}, (*at, "nodeSelector"))
    yield from _tolerations(spec.get("tolerations") or (), (*at, "tolerations"))
    yield from _volumes(spec.get("volumes") or (), (*at, "volumes"))
    for kind, containers in (("initContainers", job.init_containers), ("containers", job.containers)):
        for index, container in enumerate(containers):
            yield from _container(container, (*at, kind, index))


def _tolerations(tolerations: Any, at: Path) -> Iterator[Fault]:
    for index, one in enumerate(tolerations):
        key, operator, value, effect = (one.get(field) or "" for field in ("key", "operator", "value", "effect"))
        if operator not in _TOLERATING:
            yield (*at, index, "operator"), f"must be Equal or Exists, not {operator!r}"
        elif key and not _KEY.fullmatch(key):
            yield (*at, index, "key"), _no_key(key)
        elif not key and operator != "Exists":
            yield (*at, index, "operator"), "must be Exists where there is no key, which means every taint"
        elif operator == "Exists" and value:
            yield (*at, index, "value"), f"must not be there with operator Exists: leave {value!r} out"
        elif operator in {"", "Equal"} and not _VALUE.fullmatch(value):
            yield (*at, index, "value"), f"{value!r} is no value of a taint"
        if effect not in _EFFECTS:
            yield (*at, index, "effect"), f"must be NoSchedule, PreferNoSchedule or NoExecute, not {effect!r}"
        elif one.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield (*at, index, "effect"), "must be NoExecute where there are tolerationSeconds"


def _volumes(volumes: Any, at: Path) -> Iterator[Fault]:
    seen: set[Any] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name")
        if not (isinstance(name, str) and len(name) <= _LONGEST_LABEL and re.fullmatch(_LABEL, name)):
            yield (*at, index, "name"), f"{name!r} is no name: write up to 63 small letters, digits and -"
        elif name in seen:
            yield (*at, index, "name"), f"{name} is there twice"
        seen.add(name)
        sources = sorted(field for field, source in volume.items() if field != "name" and source is not None)
        if len(sources) > 1:
            yield (*at, index, sources[-1]), f"a volume has one source, and {name} has {' and '.join(sources)}"


def _container(container: Container, at: Path) -> Iterator[Fault]:
    if not container.image:
        yield (*at, "image"), f"container {container.name} has no image"
    for index, variable in enumerate(container.env):
        name = variable.get("name")
        if not (isinstance(name, str) and _VARIABLE.fullmatch(name)):
            yield (*at, "env", index, "name"), f"{name!r} is no name of a variable"
    paths: set[Any] = set()
    for index, mount in enumerate(container.tree.get("volumeMounts") or ()):
        path = mount.get("mountPath")
        if not path:
            yield (*at, "volumeMounts", index, "mountPath"), "is missing"
        elif path in paths:
            yield (*at, "volumeMounts", index, "mountPath"), f"two volumes are mounted at {path}"
        paths.add(path)
    for kind, name, problem in impossible(container):
        yield (*at, "resources", kind, name), problem
