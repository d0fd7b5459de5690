"""Every manifest of the corpus converts, and its result is admitted and rendered, or it is refused with a reason."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from tests.legacy.migrate.corpus import converted, expectations, manifests, refused
from trainplane.api.legacy import kinds, v2alpha1
from trainplane.legacy.migrate import older
from trainplane.legacy.migrate.convert import TYPES, migrate
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.lint.runtimes import validate
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

CORPUS = manifests()
PIPELINE = Pipeline.default()


@functools.cache
def outcome(name: str) -> Any:
    try:
        return migrate(CORPUS[name])
    except RefusedError as error:
        return error


@pytest.mark.parametrize("name", CORPUS)
def test_each_manifest_comes_to_what_is_expected(name: str) -> None:
    found = outcome(name)
    told = refused(found) if isinstance(found, RefusedError) else converted(found)
    assert told == expectations()[name]


@pytest.mark.parametrize("name", [name for name in CORPUS if "becomes" in expectations()[name]])
def test_each_runtime_is_good_to_install(name: str) -> None:
    runtimes = [one for one in outcome(name).objects if one["kind"] != "TrainJob"]
    remarks = [one for runtime in runtimes for one in validate(yaml.safe_dump(runtime), pipeline=PIPELINE)]
    assert [str(one) for one in remarks if one.severity == "error"] == []


@pytest.mark.parametrize("name", [name for name in CORPUS if "refused" in expectations()[name]])
def test_each_refusal_says_what_to_do(name: str) -> None:
    for finding in outcome(name).findings:
        assert finding.path
        assert len(finding.problem) > 20


def test_the_corpus_is_large_and_its_figures_are_told(report: SuiteReport) -> None:
    moved = [name for name in CORPUS if not isinstance(outcome(name), RefusedError)]
    report.figure("manifests_converted", len(moved))
    report.figure("manifests_refused", len(CORPUS) - len(moved))
    assert len(CORPUS) >= 40
    assert expectations().keys() == CORPUS.keys()


# -- no field is left out


def written(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a tree's fields; entries of lists and maps of replicas go without their names."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        step = "*" if path and path[-1].endswith("ReplicaSpecs") else key
        yield (*path, step)
        for below in value if isinstance(value, list) else (value,):
            yield from written(below, (*path, step))


def declared(kind: type, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a type's fields, and of those below it."""
    for one in msgspec.structs.fields(kind):
        yield from _below(msgspec.inspect.type_info(one.type), (*path, one.encode_name))


def _below(described: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for part in described.types if isinstance(described, msgspec.inspect.UnionType) else (described,):
        if isinstance(part, msgspec.inspect.StructType):
            yield from declared(part.cls, path)
        elif isinstance(part, msgspec.inspect.DictType) and isinstance(part.value_type, msgspec.inspect.StructType):
            yield from _below(part.value_type, (*path, "*"))
        elif isinstance(part, msgspec.inspect.ListType):
            yield from (found for found in _below(part.item_type, path) if found != path)


@pytest.mark.parametrize(
    ("api_version", "kind"), [(version, kind) for version, found in TYPES.items() for kind in found]
)
def test_every_field_of_a_kind_is_in_the_corpus(api_version: str, kind: str) -> None:
    jobs = [one for one in CORPUS.values() if (one["apiVersion"], one["kind"]) == (api_version, kind)]
    seen = {path for job in jobs for path in written(job["spec"], ("spec",))}
    spec = next(one.type for one in msgspec.structs.fields(TYPES[api_version][kind]) if one.encode_name == "spec")
    wanted = {path for path in declared(spec, ("spec",)) if path[:2] != ("spec", "runPolicy")}
    assert sorted(".".join(path) for path in wanted - seen) == []


def test_every_field_of_run_policy_is_in_the_corpus() -> None:
    seen = {path for job in CORPUS.values() for path in written(job["spec"], ("spec",))}
    spec = next(
        one.type
        for one in msgspec.structs.fields(TYPES[kinds.PYTORCH.api_version]["PyTorchJob"])
        if one.encode_name == "spec"
    )
    wanted = {path for path in declared(spec, ("spec",)) if path[:2] == ("spec", "runPolicy")}
    assert len(wanted) > 10
    assert sorted(".".join(path) for path in wanted - seen) == []


def test_every_field_of_the_older_trainjob_is_in_the_corpus() -> None:
    jobs = [one for one in CORPUS.values() if one["apiVersion"] == v2alpha1.API_VERSION and one["kind"] == "TrainJob"]
    seen = {".".join(path) for job in jobs for path in written(job["spec"])}
    wanted = {one.encode_name for one in msgspec.structs.fields(v2alpha1.TrainJobSpec)}
    assert sorted(wanted - seen - {"annotations"}) == []
    assert set(older.TYPES) == {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"}


def leaves(tree: Any, path: str) -> Iterator[str]:
    """Yield the fields of a job that are its own, not those of pods: down to what has no fields within."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and key not in {"template", "minResources"}:
            yield from leaves(value, f"{path}.{key}")
        else:
            yield f"{path}.{key}"


@pytest.mark.parametrize("name", [name for name in CORPUS if "becomes" in expectations()[name]])
def test_no_field_goes_without_a_word(name: str) -> None:
    job = CORPUS[name]
    if job["kind"] in older.TYPES:
        wanted = {f"spec.{field}" for field in job["spec"]} if job["kind"] == "TrainJob" else {"spec"}
    else:
        wanted = set(leaves(job["spec"], "spec"))
    noted = {note.field.lower() for note in outcome(name).notes}
    assert (
        sorted(field for field in wanted if not any(f"{one}.".startswith(f"{field.lower()}.") for one in noted)) == []
    )


# -- every kind takes the whole of runPolicy

FULL = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 5,
    "activeDeadlineSeconds": 60,
    "backoffLimit": 2,
    "suspend": True,
    "managedBy": "kueue.x-k8s.io/multikueue",
    "schedulingPolicy": {
        "minAvailable": 2,
        "queue": "gold",
        "minResources": {"cpu": "1"},
        "priorityClass": "high",
        "scheduleTimeoutSeconds": 9,
    },
}
ONE_OF_EACH = {
    (job["apiVersion"], job["kind"]): name
    for name, job in CORPUS.items()
    if "becomes" in expectations()[name] and job["apiVersion"] != v2alpha1.API_VERSION
}


@pytest.mark.parametrize("gang", ["volcano", "coscheduling", ""])
@pytest.mark.parametrize("name", ONE_OF_EACH.values())
def test_every_kind_accounts_for_the_whole_run_policy(name: str, gang: str) -> None:
    job = CORPUS[name]
    moved = migrate({**job, "spec": {**job["spec"], "runPolicy": FULL}}, gang=gang)
    noted = {note.field for note in moved.notes}
    wanted = {f"spec.runPolicy.{field}" for field in FULL if field != "schedulingPolicy"}
    wanted |= {f"spec.runPolicy.schedulingPolicy.{field}" for field in FULL["schedulingPolicy"]}  # type: ignore[attr-defined]
    assert wanted <= noted
    trainjob = moved.objects[-1]
    assert trainjob["spec"]["suspend"] is True
    assert trainjob["spec"]["activeDeadlineSeconds"] == 60
    assert trainjob["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"
    assert moved.objects[0]["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] == 5
