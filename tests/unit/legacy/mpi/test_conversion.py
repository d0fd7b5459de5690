"""MPIJobs of both versions, there and back; and what a hostile annotation cannot do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.mpi.conversion import LONGEST_RECORD, V1, V2BETA1, converted, was_v1
from trainplane.legacy.mpi.review import answered

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_OF_V1 = "trainplane.dev/mpijob-v1"
_OF_V2 = "trainplane.dev/mpijob-v2beta1"


def _job(api_version: str, /, annotations: Tree | None = None, **spec: Any) -> Tree:
    metadata = {"name": "pi", "namespace": "team", "uid": "1", **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": api_version, "kind": "MPIJob", "metadata": metadata, "spec": spec}


def _replica(**said: Any) -> Tree:
    return {"template": {"spec": {"containers": [{"name": "mpi", "image": "i", **said.pop("container", {})}]}}, **said}


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    return st.fixed_dictionaries({}, optional=fields)


_CLEAN = st.sampled_from(names.CLEAN_POD_POLICIES)
_COUNT = st.integers(0, 9)
_GPUS = st.sampled_from([{}, {"resources": {"limits": {"nvidia.com/gpu": 1}}}, {"resources": {"limits": {"cpu": 1}}}])


def _replicas(policies: tuple[str, ...]) -> st.SearchStrategy[Tree]:
    one = st.builds(
        lambda said, container: _replica(container=container, **said),
        _some(restartPolicy=st.sampled_from(policies), replicas=_COUNT),
        _GPUS,
    )
    return _some(Launcher=one, Worker=one)


def _policies(ours: str) -> st.SearchStrategy[Tree]:
    managers = st.sampled_from([ours, names.MANAGED_BY_MULTIKUEUE])
    said = _some(cleanPodPolicy=_CLEAN, managedBy=managers, backoffLimit=_COUNT, suspend=st.booleans())
    return said.filter(bool)


_ANNOTATIONS = st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3), max_size=2)
_V1_JOBS = st.builds(
    lambda annotations, spec: _job(V1, annotations, **spec),
    _ANNOTATIONS,
    _some(
        slotsPerWorker=_COUNT,
        cleanPodPolicy=_CLEAN,
        mainContainer=st.sampled_from(["mpi", "a-b"]),
        mpiReplicaSpecs=_replicas(names.RESTART_POLICIES),
        runPolicy=_policies(names.MANAGED_BY_TRAINING_OPERATOR),
    ),
)
_V2_JOBS = st.builds(
    lambda annotations, spec: _job(V2BETA1, annotations, **spec),
    _ANNOTATIONS,
    _some(
        slotsPerWorker=_COUNT,
        runLauncherAsWorker=st.just(True),
        sshAuthMountPath=st.sampled_from(["/home/mpiuser/.ssh", "/k"]),
        launcherCreationPolicy=st.just(names.LAUNCHER_WAITS),
        mpiImplementation=st.sampled_from([names.MPI_INTEL, names.MPI_MPICH]),
        mpiReplicaSpecs=_replicas((names.RESTART_NEVER, names.RESTART_ON_FAILURE)),
        runPolicy=_policies(names.MANAGED_BY_MPI_OPERATOR),
    ),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(_V1_JOBS)
def test_a_job_of_v1_comes_back_as_it_was(job: Tree) -> None:
    assert converted(converted(job, V2BETA1), V1) == job


@given(_V2_JOBS)
def test_a_job_of_v2beta1_comes_back_as_it_was(job: Tree) -> None:
    assert converted(converted(job, V1), V2BETA1) == job


@given(_V1_JOBS | _V2_JOBS)
def test_the_way_is_the_same_each_time(job: Tree) -> None:
    for version in (V1, V2BETA1):
        once = converted(job, version)
        assert converted(converted(converted(once, V1), V2BETA1), version) == once


@given(_V1_JOBS | _V2_JOBS)
def test_of_metadata_annotations_alone_change(job: Tree) -> None:
    for version in (V1, V2BETA1):
        turned = converted(job, version)
        kept = [{key: value for key, value in one["metadata"].items() if key != "annotations"} for one in (job, turned)]
        assert kept[0] == kept[1]
        theirs = trees.fields(turned, "metadata", "annotations")
        assert trees.fields(job, "metadata", "annotations").items() <= theirs.items()


def test_what_v1_says_otherwise_is_translated() -> None:
    replicas = {
        "Launcher": _replica(container={"resources": {"limits": {"amd.com/gpu": 1}}}),
        "Worker": _replica(restartPolicy="Always"),
    }
    policy = {"managedBy": names.MANAGED_BY_TRAINING_OPERATOR}
    job = _job(V1, cleanPodPolicy="All", mainContainer="mpi", mpiReplicaSpecs=replicas, runPolicy=policy)
    spec = converted(job, V2BETA1)["spec"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "All", "managedBy": names.MANAGED_BY_MPI_OPERATOR}
    assert spec["runLauncherAsWorker"] is True
    assert [spec["mpiReplicaSpecs"][one]["restartPolicy"] for one in ("Launcher", "Worker")] == ["Never", "OnFailure"]
    assert not {"cleanPodPolicy", "mainContainer"} & spec.keys()


def test_the_run_policy_of_v1_outranks_the_field_above_it() -> None:
    job = _job(V1, cleanPodPolicy="All", runPolicy={"cleanPodPolicy": "Running"})
    assert converted(job, V2BETA1)["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"


def test_an_edit_in_the_other_version_is_not_undone_on_the_way_back() -> None:
    job = _job(V1, mainContainer="mpi", mpiReplicaSpecs={"Worker": _replica(restartPolicy="ExitCode")})
    stored = converted(job, V2BETA1)
    edited = trees.put(stored, "spec", "mpiReplicaSpecs", "Worker", "restartPolicy", value="OnFailure")
    spec = converted(edited, V1)["spec"]
    assert spec["mpiReplicaSpecs"]["Worker"]["restartPolicy"] == "OnFailure"
    assert spec["mainContainer"] == "mpi"


def test_a_client_of_v1_that_writes_back_what_it_read_loses_nothing_of_v2beta1() -> None:
    job = _job(V2BETA1, mpiImplementation="Intel", sshAuthMountPath="/k", runLauncherAsWorker=True)
    read = converted(job, V1)
    written = trees.put(read, "spec", "slotsPerWorker", value=4)
    assert converted(written, V2BETA1)["spec"] == {**job["spec"], "slotsPerWorker": 4}


def test_what_the_schema_fills_in_is_not_kept() -> None:
    filled: Tree = {
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
    }
    assert converted(_job(V2BETA1, **filled), V1)["metadata"]["annotations"] == {_OF_V2: "{}"}


def test_it_shows_in_which_version_a_job_was_written() -> None:
    assert was_v1(converted(_job(V1), V2BETA1))
    assert not was_v1(converted(converted(_job(V2BETA1), V1), V2BETA1))


@given(_JSON)
def test_whatever_an_annotation_says_every_field_has_a_value_that_it_may_have(said: Any) -> None:
    record = {path: [said, None] for path in ("mpiImplementation", "sshAuthMountPath", "runPolicy.managedBy", "x")}
    turned = converted(_job(V1, {_OF_V2: json.dumps(record)}, runPolicy={}), V2BETA1)
    spec = turned["spec"]
    assert spec.get("mpiImplementation") in {None, *names.MPI_IMPLEMENTATIONS}
    assert isinstance(spec.get("sshAuthMountPath"), str | None)
    assert "managedBy" not in spec["runPolicy"]
    assert spec.keys() <= {"mpiImplementation", "sshAuthMountPath", "runPolicy"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"mpiImplementation": "Intel"}',
        '{"mpiImplementation": ["Intel"]}',
        '{"mpiImplementation": ["Intel", null, null]}',
        '{"mpiReplicaSpecs.Worker": [{}, null]}',
        '{"runPolicy.managedBy": ["kueue.x-k8s.io/multikueue", null]}',
        '{"runPolicy.managedBy": ["evil", null]}',
        "[" * 9000,
        '{"mpiImplementation": ["Intel", null], "x": ["' + "x" * LONGEST_RECORD + '", null]}',
    ],
)
def test_an_annotation_that_is_not_ours_is_as_if_it_were_not_there(text: str) -> None:
    job = _job(V1, {_OF_V2: text, "kept": "1"}, runPolicy={"suspend": True})
    turned = converted(job, V2BETA1)
    assert turned["spec"] == {"runPolicy": {"suspend": True}}
    assert turned["metadata"]["annotations"]["kept"] == "1"
    assert _OF_V2 not in turned["metadata"]["annotations"]


def test_an_annotation_cannot_hand_a_job_to_another_manager() -> None:
    record = json.dumps({"runPolicy.managedBy": [names.MANAGED_BY_MULTIKUEUE, names.MANAGED_BY_MPI_OPERATOR]})
    job = _job(V1, {_OF_V2: record}, runPolicy={"managedBy": names.MANAGED_BY_TRAINING_OPERATOR})
    assert converted(job, V2BETA1)["spec"]["runPolicy"]["managedBy"] == names.MANAGED_BY_MPI_OPERATOR


@given(_JSON, _JSON)
def test_a_spec_of_any_form_is_converted_or_left(spec: Any, policy: Any) -> None:
    for version, other in ((V1, V2BETA1), (V2BETA1, V1)):
        for said in (spec, {"runPolicy": policy, "cleanPodPolicy": policy, "mpiReplicaSpecs": spec}):
            job = {"apiVersion": version, "kind": "MPIJob", "metadata": {"name": "pi"}, "spec": said}
            assert converted(job, other)["apiVersion"] == other


class TestReview:
    def test_all_objects_are_answered_in_their_order(self) -> None:
        jobs = [trees.put(_job(V1), "metadata", "name", value=name) for name in ("a", "b")]
        review = {"request": {"uid": "7", "desiredAPIVersion": V2BETA1, "objects": [*jobs, _job(V2BETA1)]}}
        response = answered(review)["response"]
        assert response["uid"] == "7"
        assert response["result"] == {"status": "Success"}
        assert [one["metadata"]["name"] for one in response["convertedObjects"]] == ["a", "b", "pi"]
        assert {one["apiVersion"] for one in response["convertedObjects"]} == {V2BETA1}

    @pytest.mark.parametrize(
        "request_",
        [
            {},
            {"desiredAPIVersion": "kubeflow.org/v3", "objects": []},
            {"desiredAPIVersion": V1},
            {"desiredAPIVersion": V1, "objects": [{"apiVersion": V1, "kind": "TFJob"}]},
            {"desiredAPIVersion": V1, "objects": [{"apiVersion": "v1", "kind": "MPIJob"}]},
            {"desiredAPIVersion": V1, "objects": ["MPIJob"]},
            {"desiredAPIVersion": [V1], "objects": []},
        ],
    )
    def test_what_cannot_be_converted_fails_with_a_reason(self, request_: Tree) -> None:
        response = answered({"request": {"uid": "7", **request_}})["response"]
        assert response["result"]["status"] == "Failure"
        assert response["result"]["message"]
        assert "convertedObjects" not in response

    @pytest.mark.parametrize("review", [None, [], "x", {"request": []}])
    def test_a_question_of_another_form_fails(self, review: Any) -> None:
        assert answered(review)["response"]["result"]["status"] == "Failure"
