"""Whether a tree has the form that a schema asks for."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.admission.rules import RULES, RULES_OF_CHANGE, squeezed
from trainplane.admission.schema_validation import Problem, judge
from trainplane.api.crds.schema import schema_of
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.api.trainjob import TrainJob

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "boolean"}
AMOUNT = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[0-9]+(m|Gi)?$",
}
PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": NUMBER, "protocol": {"type": "string", "default": "TCP"}},
    },
}


def problems(value: Any, schema: Any) -> list[str]:
    return [f"{'.'.join(map(str, problem.path))}: {problem.text}" for problem in judge(value, schema)]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("a", TEXT),
        (1, NUMBER),
        (-(2**31), NUMBER),
        (True, FLAG),
        (2, AMOUNT),
        ("500m", AMOUNT),
        (1.5, {"type": "number"}),
        ({}, {"type": "object"}),
        ({"anything": [1]}, {"type": "object"}),
        ({"a": "1"}, {"type": "object", "additionalProperties": TEXT}),
        ([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 2}], PORTS),
        (["a", "b"], {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}),
        (["a", "a"], {"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"}),
        ("b", {**TEXT, "enum": ["a", "b"], "minLength": 1, "maxLength": 1, "pattern": "^[ab]"}),
    ],
)
def test_what_is_right(value: Any, schema: Any) -> None:
    assert problems(value, schema) == []


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        (1, TEXT, "must be a text, not a whole number: put it in quotes"),
        (True, TEXT, "must be a text, not true or false: put it in quotes"),
        ({}, TEXT, "must be a text, not fields"),
        (None, TEXT, "has no value: write one, or take the field out"),
        ("1", NUMBER, "must be a whole number, not a text: take the quotes away"),
        ("one", NUMBER, "must be a whole number, not a text"),
        (True, NUMBER, "must be a whole number, not true or false"),
        (1.5, NUMBER, "must be a whole number, not a number"),
        (2**31, NUMBER, "2147483648 is too large a number"),
        (1, {**NUMBER, "minimum": 2}, "must be 2 or more, not 1"),
        (3, {**NUMBER, "maximum": 2}, "must be 2 or less, not 3"),
        ("yes", FLAG, "must be true or false, not a text"),
        (0.5, AMOUNT, 'must be a whole number or a text: write "0.5" in quotes'),
        (True, AMOUNT, "must be a number or a text, not true or false"),
        ("two", AMOUNT, "'two' is no amount: write one such as 500m, 2 or 4Gi"),
        ({"name": "a"}, PORTS, "must be a list, not fields: begin its first line with `- `"),
        ([], {"type": "object"}, "must be fields, not a list"),
        ({}, {"type": "object", "minProperties": 1}, "is empty"),
        ({}, {"type": "object", "required": ["a"]}, "a is missing"),
        ([], {"type": "array", "items": TEXT, "minItems": 1}, "must have 1 or more entries"),
        (["a", "b"], {"type": "array", "items": TEXT, "maxItems": 1}, "has 2 entries, and may have 1"),
        ("", {**TEXT, "minLength": 1}, "must not be empty"),
        ("abc", {**TEXT, "maxLength": 2}, "has 3 characters, and may have 2"),
        ("abc", {**TEXT, "pattern": "^b"}, "'abc' does not have the form it must have"),
        ("c", {**TEXT, "enum": ["a", "b"]}, "must be 'a' or 'b', not 'c'"),
    ],
)
def test_what_is_wrong(value: Any, schema: Any, said: str) -> None:
    assert problems(value, schema) == [f": {said}"]


def test_unknown_fields_are_named_with_what_was_meant() -> None:
    schema = {"type": "object", "properties": {"replicas": NUMBER, "template": TEXT}}
    assert problems({"replica": 1, "x": 2}, schema) == [
        "replica: there is no such field: did you mean replicas?",
        "x: there is no such field",
    ]


def test_entries_are_told_apart_by_their_keys_and_defaults() -> None:
    assert problems([{"port": 1}, {"port": 2}, {"port": 1, "protocol": "TCP"}], PORTS) == [
        "2: port 1 and protocol TCP is there twice"
    ]
    schema = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    assert problems(["a", "b", "a"], schema) == ["2: 'a' is there twice"]


def test_entries_that_are_no_entries_are_told_once() -> None:
    assert problems(["x", {"protocol": "TCP"}], PORTS) == [
        "0: must be fields, not a text",
        "1: port is missing",
    ]


def test_every_problem_is_told_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": TEXT}, "b": AMOUNT}}
    found = list(judge({"a": ["x", 1], "b": "?"}, schema))
    assert [(problem.path, problem.is_misshapen) for problem in found] == [(("a", 1), True), (("b",), False)]


class TestRules:
    """Rules of CEL, each in Python."""

    def all(self, schema: Any) -> set[str]:
        if isinstance(schema, list):
            return {rule for item in schema for rule in self.all(item)}
        if not isinstance(schema, dict):
            return set()
        own = {squeezed(rule["rule"]) for rule in schema.get("x-kubernetes-validations", ())}
        return own.union(*(self.all(value) for key, value in schema.items() if key != "x-kubernetes-validations"))

    def test_the_tables_have_all_and_no_more(self) -> None:
        rules = set().union(
            *(self.all(schema_of(kind)) for kind in (TrainingRuntime, ClusterTrainingRuntime, TrainJob))
        )
        assert {rule for rule in rules if "oldSelf" not in rule} == set(RULES)
        assert {rule for rule in rules if "oldSelf" in rule} == set(RULES_OF_CHANGE)

    @pytest.mark.parametrize(
        ("part", "good", "bad"),
        [
            ("has(self.mpi)", {"jax": {}, "numNodes": 1}, {"jax": {}, "torch": {}}),
            ("elasticPolicy", {"torch": {"elasticPolicy": {}}}, {"numNodes": 1, "torch": {"elasticPolicy": {}}}),
            ("elasticPolicy", {"numNodes": 1, "torch": {}}, {"numNodes": 0, "torch": {"elasticPolicy": {}}}),
            ("c == 'node'", ["side"], ["side", "node"]),
            ("type(self) == int", 1, 0),
            ("type(self) == int", "auto", "many"),
            ("type(self) == int", "12", "012"),
            ("self >= 1", 1, 0),
            ("name.matches", {"metadata": {"name": "a-1"}}, {"metadata": {"name": "1-a"}}),
            ("size(self.metadata.name)", {"metadata": {"name": "a" * 63}}, {"metadata": {"name": "a" * 64}}),
            ("self == ''", "hf://a/b", "a/b"),
            ("kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/multikueue", "me"),
            ("lastUpdatedTime", {"lastUpdatedTime": "x"}, {}),
            (
                "startupPolicyOrder",
                {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [{"name": "a"}]},
                {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [{"dependsOn": []}]},
            ),
            (
                "startupPolicyOrder",
                {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}, "replicatedJobs": [{"dependsOn": []}]},
                {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [{}, {"dependsOn": []}]},
            ),
            (
                "startupPolicyOrder",
                {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}},
                {"startupPolicy": {"startupPolicyOrder": "InOrder"}},  # CEL fails where there is no list
            ),
            ("size(self) == 0", "", "team"),
        ],
    )
    def test_each_means_what_it_says(self, part: str, good: Any, bad: Any) -> None:
        (rule,) = (rule for rule in RULES if part in rule)
        assert RULES[rule](good)
        assert not RULES[rule](bad)

    @pytest.mark.parametrize(
        ("policy", "told"),
        [
            ({"templates": [{"metadata": {"name": "a", "namespace": ""}}]}, []),
            ({"templates": [{"metadata": {}}]}, []),
            ({"templates": []}, []),
            ({"templates": [{"metadata": {"namespace": "n"}}]}, ["leave metadata.namespace out"]),
            ({"templates": [{"spec": {}}]}, ["metadata is missing"]),
            ({}, ["templates is missing"]),
        ],
    )
    def test_claims_are_made_where_the_jobset_is(self, policy: Any, told: list[str]) -> None:
        runtime = {"spec": {"template": {"spec": {"volumeClaimPolicies": [policy]}}}}
        found = [problem.text.partition(":")[0] for problem in judge(runtime, schema_of(TrainingRuntime))]
        assert found == told

    def test_one_that_is_broken_is_told_in_the_schemas_words(self) -> None:
        schema = {**NUMBER, "x-kubernetes-validations": [{"rule": "self  >= 1", "message": "at least one"}]}
        assert list(judge(0, schema)) == [Problem((), "at least one")]
        assert list(judge(1, schema)) == []

    def test_one_that_compares_with_before_is_judged_where_there_is_a_before(self) -> None:
        fixed = {**NUMBER, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]}
        schema = {"type": "object", "properties": {"a": fixed}}
        assert list(judge({"a": 1}, schema)) == []
        assert list(judge({"a": 1}, schema, old={})) == []
        assert list(judge({"a": 1}, schema, old={"a": 1})) == []
        assert list(judge({"a": 1}, schema, old={"a": 2})) == [Problem(("a",), "fixed")]

    def test_entries_are_compared_by_their_keys(self) -> None:
        fixed = {**NUMBER, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]}
        items = {"type": "object", "properties": {"name": TEXT, "a": fixed}}
        schema = {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
        old = [{"name": "x", "a": 1}, {"name": "y", "a": 2}]
        assert list(judge([{"name": "z", "a": 9}, {"name": "y", "a": 2}], schema, old=old)) == []
        assert list(judge([{"name": "y", "a": 1}], schema, old=old)) == [Problem((0, "a"), "fixed")]

    @pytest.mark.parametrize(
        ("part", "old", "good", "bad"),
        [
            ("apiGroup", {"apiGroup": "kubeflow.org"}, {"apiGroup": "trainer.kubeflow.org"}, {"apiGroup": "x"}),
            ("has(self.image)", {"image": "i"}, {"image": "j"}, {}),
            ("has(self.image)", {"numProcPerNode": "auto"}, {}, {"numProcPerNode": 1, "args": []}),
            ("has(self.image)", {"numProcPerNode": 1}, {"numProcPerNode": 2}, {}),
            ("type(self) == int", "auto", 4, "4"),
            ("type(self) == int", "4", 4, 5),
        ],
    )
    def test_each_of_a_change_means_what_it_says(self, part: str, old: Any, good: Any, bad: Any) -> None:
        (rule,) = (rule for rule in RULES_OF_CHANGE if part in rule)
        assert RULES_OF_CHANGE[rule](good, old)
        assert RULES_OF_CHANGE[rule](old, old)
        assert not RULES_OF_CHANGE[rule](bad, old)
