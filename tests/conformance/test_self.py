"""The harness on itself: it finds nothing between two equal operators, and finds what is planted."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.conformance import admission_cases, controller_cases, gang_cases, mpi_cases, plain_cases, torch_cases
from tests.conformance.cases import Case, Create
from tests.conformance.compare import ABSENT, Verdict, tree_differences, verdict, verdict_differences
from tests.conformance.differences import unexplained
from tests.conformance.documents import torch, train_job
from tests.conformance.drive import Drive
from tests.conformance.flux_differences import is_of_flux
from tests.conformance.generated import collect
from tests.conformance.normal import by_case, normal
from tests.conformance.side import Answer, Side
from tests.conformance.test_takeover import _touched

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.conformance.cases import Step, Tree

UID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.reference
def test_the_reference_equals_itself(itself: Drive) -> None:
    cases = [
        *plain_cases.CASES[:6],
        *controller_cases.CONDITIONS[:4],
        *controller_cases.SNAPSHOTS[:4],
        *torch_cases.PATCHES,
        *admission_cases.UPDATE[:10],
        *mpi_cases.OBJECTS[:4],
        *gang_cases.MEMBERS[:4],
        *(case for case in collect(9) if not is_of_flux(case)),  # whose certificate the reference makes of a uid
    ]
    found = [difference for run in itself.run(cases) for difference in run.differences]
    assert [str(difference) for difference in found] == []


class Lying(Side):
    """A side that is told another story, so that its operator does something else."""

    def perform(self, step: Step, namespace: str) -> Answer:
        """Plant another image into every TrainJob."""
        if isinstance(step, Create) and "trainer" in step.document["spec"]:
            document = json.loads(json.dumps(step.document))
            document["spec"]["trainer"]["image"] = "test:planted"
            return super().perform(Create(document), namespace)
        return super().perform(step, namespace)


@pytest.mark.reference
def test_a_planted_difference_is_reported(reference_cluster: Cluster) -> None:
    sides = Side(reference_cluster, "honest", prefix="rh"), Lying(reference_cluster, "lying", prefix="rl")
    drive = Drive(*sides, patience=lambda _: 6.0)  # the lie stays one
    (run,) = drive.run([Case("planted", (Create(train_job(trainer={"image": "test:job"})),), (torch(),))])
    drive.close()
    found = unexplained(run.differences)
    image = "spec.replicatedJobs[node].template.spec.template.spec.containers[node].image"
    assert [(one.place, one.path) for one in found] == [("JobSet job", image), ("TrainJob job", "spec.trainer.image")]
    assert (found[0].reference, found[0].ours) == ("test:job", "test:planted")


# -- normal form ------------------------------------------------------------------------------------------------------


def jobset(**changes: Any) -> Tree:
    owner = {"kind": "TrainJob", "name": "job", "uid": UID}
    metadata = {"name": "job", "namespace": "n-1", "uid": "x", "resourceVersion": "7", "ownerReferences": [owner]}
    return {"kind": "JobSet", "metadata": metadata, "spec": {"at": "2030-01-01T00:00:00Z", **changes}}


def test_what_any_two_runs_differ_in_is_gone() -> None:
    one = normal(jobset(env=[{"name": "B"}, {"name": "A"}]), "n-1", {UID: "<uid of TrainJob job>"})
    assert one["metadata"]["ownerReferences"] == [{"kind": "TrainJob", "name": "job", "uid": "<uid of TrainJob job>"}]
    assert one["metadata"].keys() == {"name", "namespace", "ownerReferences"}
    assert one["spec"] == {"at": "<now>", "env": [{"name": "A"}, {"name": "B"}]}


def test_an_owner_that_is_not_there_shows() -> None:
    assert normal(jobset(), "n-1", {})["metadata"]["ownerReferences"][0]["uid"] == "<uid>"


def test_a_time_that_a_case_gave_stays() -> None:
    assert normal(jobset(at="2001-01-01T00:00:00Z"), "n-1", {})["spec"]["at"] == "2001-01-01T00:00:00Z"


def test_order_counts_where_it_means_something() -> None:
    one, other = ({"command": words} for words in (["a", "b"], ["b", "a"]))
    assert tree_differences(normal(jobset(**one), "n-1", {}), normal(jobset(**other), "n-1", {}))


REFERRED, REFERRING = {"name": "Z", "value": "1"}, {"name": "A", "value": "$(Z) $$(B) $(NOBODY)"}


def test_the_order_of_variables_counts_where_one_refers_to_another() -> None:
    one, other = (
        normal(jobset(env=variables), "n-1", {}) for variables in ([REFERRED, REFERRING], [REFERRING, REFERRED])
    )
    assert tree_differences(one, other) == [("spec.env[A].resolves", ["Z"], [])]


def event(type_: str, reason: str, **fields: Any) -> Tree:
    about = {"kind": "TrainJob", "name": "job"}
    return {
        "metadata": {"namespace": "n-1", "name": "e", "uid": "u"},
        "type": type_,
        "reason": reason,
        "involvedObject": about,
        **fields,
    }


def test_events_are_compared_by_reason_and_count() -> None:
    pods = event("Normal", "Pulled")
    pods["involvedObject"] = {"kind": "Pod", "name": "job"}
    told = [
        event("Normal", "Started", count=1),
        event("Normal", "Started", count=2),
        event("Warning", "Failed", series={"count": 9}),
        event("Warning", "Slow", message="failed calling webhook: context deadline exceeded"),
        pods,
    ]
    assert by_case({"Event": told}, ["n-1"]) == {
        "n-1": {"News TrainJob job": {"Normal": {"Started": 3}, "Warning": {"Failed": "told"}}}
    }


def test_snapshots_are_compared_as_trees() -> None:
    texts = (
        "kind: A\nspec: {b: 1, a: [x]}\n",
        "spec:\n  a:\n  - x\n  b: 1\nkind: A\n",
        "kind: B\nspec: {b: 1, a: [x]}\n",
    )
    one, same, other = (
        normal({"kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"runtime": text}}, "n-1", {}) for text in texts
    )
    assert tree_differences(one, same) == []
    assert tree_differences(one, other) == [("data.runtime.kind", "A", "B")]


def keys(private: bytes, public: bytes) -> Tree:
    pair = {"ssh-privatekey": private, "ssh-publickey": public}
    data = {name: base64.b64encode(text).decode() for name, text in pair.items()}
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "type": "kubernetes.io/ssh-auth", "data": data}
    found: Tree = normal(secret, "n-1", {})["data"]
    return found


def drawn(curve: ec.EllipticCurve) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(curve)
    form = (serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return key.private_bytes(serialization.Encoding.PEM, *form), public + b"\n"


def test_of_keys_their_kind_and_length_are_compared_and_that_they_fit() -> None:
    (one, fits), (other, fits_other), shorter = drawn(ec.SECP521R1()), drawn(ec.SECP521R1()), drawn(ec.SECP256R1())
    assert keys(one, fits) == keys(other, fits_other)
    assert keys(one, fits) != keys(*shorter)
    assert keys(one, fits) != keys(one, fits_other)
    assert keys(one, fits) != keys(one, fits.rstrip(b"\n"))
    assert keys(b"mine", b"mine")["ssh-privatekey"] == "bWluZQ=="


def test_ownership_by_apply_is_compared() -> None:
    fields = {"manager": "trainer", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}}
    item = jobset()
    item["metadata"]["managedFields"] = [fields, {**fields, "manager": "kubectl"}]
    assert normal(item, "n-1", {})["owned"] == {"f:spec": {"f:suspend": {}}}


@pytest.mark.parametrize(
    ("at", "judged"), [("00:00:05", "after the deadline"), ("00:00:04", "1.0 s before the deadline")]
)
def test_a_deadline_is_judged(at: str, judged: str) -> None:
    failed = {"type": "Failed", "reason": "DeadlineExceeded", "lastTransitionTime": f"2030-01-01T{at}Z"}
    job = {
        "kind": "TrainJob",
        "metadata": {"name": "job", "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"activeDeadlineSeconds": 5},
        "status": {"conditions": [failed]},
    }
    assert normal(job, "n-1", {})["status"]["conditions"][0]["lastTransitionTime"] == judged


# -- comparison -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": "1"}, [("a", 1, "1")]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        ({"a": {}}, {}, [("a", {}, ABSENT)]),
        ([1, 2], [1, 3], [("[1]", 2, 3)]),
        ([1], [1, 2], [("", [1], [1, 2])]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [("a[0].b", 1, 2)]),
        ([{"name": "n", "b": 1}], [{"name": "n", "b": 2}], [("[n].b", 1, 2)]),
        ([{"type": "t", "b": 1}], [{"type": "t", "b": 2}], [("[t].b", 1, 2)]),
        ([{"name": "n"}], [{"name": "m"}], [("[0].name", "n", "m")]),
    ],
)
def test_trees_differ_at_the_smallest_path(one: Any, other: Any, found: list[tuple[str, Any, Any]]) -> None:
    assert tree_differences(one, other) == found


def test_verdicts_are_compared_by_code_fields_and_warnings() -> None:
    accepted, warned = Verdict(201), Verdict(201, warned=1)
    refused, elsewhere = Verdict(403, ("spec.a",)), Verdict(403, ("spec.b",))
    assert verdict_differences(accepted, accepted) == []
    assert verdict_differences(accepted, warned) == [("warned", 0, 1)]
    assert verdict_differences(accepted, refused) == [("code", 201, 403)]
    assert verdict_differences(refused, elsewhere) == [("fields", ["spec.a"], ["spec.b"])]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"message": 'admission webhook "w" denied the request: spec.a: Forbidden: no'}, ("spec.a",)),
        (
            {"message": 'admission webhook "w" denied the request: [spec.a[0].b: Invalid, spec.c: Invalid]'},
            ("spec.a[0].b", "spec.c"),
        ),
        (
            {"message": "refused for 2 reasons:\n- spec.a: set spec.z: so\n- metadata.name: long"},
            ("metadata.name", "spec.a"),
        ),
        ({"message": "x", "details": {"causes": [{"field": "<nil>"}, {"field": "spec.a"}]}}, ("spec.a",)),
    ],
)
def test_a_verdict_names_fields(body: Tree, fields: tuple[str, ...]) -> None:
    assert verdict(Answer(403, body)).fields == fields


# -- takeover ---------------------------------------------------------------------------------------------------------


def kept(kind: str, **metadata: Any) -> dict[str, Tree]:
    spec = {"replicatedJobs": [], "suspend": metadata.pop("suspend", False)} if kind == "JobSet" else {}
    return {
        f"{kind} n/x": {"metadata": {"uid": "1", "resourceVersion": "1", "generation": 1, **metadata}, "spec": spec}
    }


@pytest.mark.parametrize(
    ("before", "after", "is_touched"),
    [
        (kept("Pod"), kept("Pod"), False),
        (kept("Pod"), kept("Pod", resourceVersion="2"), True),
        (kept("Pod"), kept("Pod", uid="2"), True),
        (kept("Pod"), {}, True),
        ({}, kept("Pod"), True),
        (kept("JobSet"), kept("JobSet", resourceVersion="2"), False),
        (kept("JobSet"), kept("JobSet", generation=2), True),
        (kept("JobSet"), kept("JobSet", suspend=True), True),
        (kept("JobSet"), kept("JobSet", labels={"a": "b"}), True),
        (kept("JobSet"), kept("JobSet", uid="2"), True),
    ],
)
def test_a_touch_is_seen(before: dict[str, Tree], after: dict[str, Tree], is_touched: bool) -> None:
    assert bool(_touched(before, after)) is is_touched
