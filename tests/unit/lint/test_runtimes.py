"""What is said about a file before it is installed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from trainplane.lint.runtimes import Remark, steps, validate
from trainplane.render.findings import Finding, written
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.plan import Plan

PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))
GOOD = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: mine
  labels:
    trainer.kubeflow.org/framework: torch
  annotations:
    example.com/team: vision
spec:
  mlPolicy:
    numNodes: 2
    torch: {}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              template:
                spec:
                  containers:
                    - name: node
                      image: torch
                      resources:
                        limits:
                          cpu: 2
"""
SPEC = "spec.template.spec"
POD = f"{SPEC}.replicatedJobs[0].template.spec.template.spec"


def said(text: str) -> list[str]:
    return [str(remark) for remark in validate(text, pipeline=PIPELINE)]


def changed(*changes: tuple[str, str]) -> list[str]:
    """Return what is said about the good file with some texts replaced, each of which is there once."""
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return said(text)


def test_a_good_file() -> None:
    assert said(GOOD) == []
    assert validate(GOOD) == []


class TestFile:
    def test_several_runtimes_are_judged_each_with_its_own_lines(self) -> None:
        wrong = GOOD.replace("numNodes: 2", "numNodes: two")
        assert said(f"{wrong}---\n{wrong}") == [
            "line 11: error: spec.mlPolicy.numNodes: must be a whole number, not a text",
            "line 41: error: spec.mlPolicy.numNodes: must be a whole number, not a text",
        ]

    def test_other_objects_beside_it_are_left_alone(self) -> None:
        assert said(f"kind: Namespace\nmetadata: 1\n---\n{GOOD}---\nkind: TrainJob\n") == []

    @pytest.mark.parametrize("text", ["", "# nothing", "kind: TrainJob\n"])
    def test_a_file_without_a_runtime(self, text: str) -> None:
        (only,) = said(text)
        assert only == "line 1: error: there is no TrainingRuntime and no ClusterTrainingRuntime in this file"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("kind: ClusterTrainingRuntime", "kind: ClusterTrainingRunTime"),
            ("v1alpha1\n", "v2\n"),
            ("apiVersion: trainer.kubeflow.org/v1alpha1\n", "apiVersion: kubeflow.org/v1alpha1\n"),
        ],
    )
    def test_another_kind_of_runtime(self, old: str, new: str) -> None:
        (only,) = changed((old, new))
        assert only.startswith("line 2: error: kind: must be apiVersion trainer.kubeflow.org/v1alpha1 and kind ")

    def test_a_list_is_no_object(self) -> None:
        (only,) = said("- a\n- b\n")
        assert only.startswith("line 1: error: kind: must be")

    def test_what_is_no_yaml(self) -> None:
        (only,) = changed(("    numNodes: 2", "    numNodes: [2"))
        assert only.startswith("line 12: error: no YAML: ")

    def test_what_stands_before_it_is_judged_all_the_same(self) -> None:
        wrong = GOOD.replace("numNodes: 2", "numNodes: two")
        first, second = said(f"{wrong}---\na: [\n")
        assert first.startswith("line 11: error: spec.mlPolicy.numNodes")
        assert "no YAML" in second

    def test_a_field_that_is_there_twice(self) -> None:
        assert changed(("    torch: {}\n", "    torch: {}\n    numNodes: 3\n")) == [
            "line 13: error: spec.mlPolicy.numNodes: is there twice: the first one is lost"
        ]


class TestForm:
    @pytest.mark.parametrize(
        ("old", "new", "line", "path", "problem"),
        [
            (
                "numNodes: 2",
                "numNodes: '2'",
                11,
                "spec.mlPolicy.numNodes",
                "must be a whole number, not a text: take the quotes away",
            ),
            ("  mlPolicy:", "  mlpolicy:", 10, "spec.mlpolicy", "there is no such field: did you mean mlPolicy?"),
            (
                "image: torch",
                "image:",
                26,
                f"{POD}.containers[0].image",
                "has no value: write one, or take the field out",
            ),
            (
                "cpu: 2",
                "cpu: 2.5",
                29,
                f"{POD}.containers[0].resources.limits.cpu",
                'must be a whole number or a text: write "2.5" in quotes',
            ),
            (
                "cpu: 2",
                "cpu: two",
                29,
                f"{POD}.containers[0].resources.limits.cpu",
                "'two' is no amount: write one such as 500m, 2 or 4Gi",
            ),
            (
                "example.com/team: vision",
                "example.com/team: 7",
                8,
                "metadata.annotations[example.com/team]",
                "must be a text, not a whole number: put it in quotes",
            ),
            (
                "name: mine",
                "name: My_Runtime",
                4,
                "metadata.name",
                "'My_Runtime' is no name: write small letters, digits, - and .",
            ),
            (
                "  name: mine\n",
                "  name: mine\n  namespace: team\n",
                5,
                "metadata.namespace",
                "a ClusterTrainingRuntime has no namespace: leave it out",
            ),
            ("  name: mine\n", "", 3, "metadata", "name is missing"),
            (
                "framework: torch",
                "framework: tor ch",
                6,
                "metadata.labels[trainer.kubeflow.org/framework]",
                "'tor ch' is no value of a label: write up to 63 letters, digits, -, _ and .",
            ),
            (
                "example.com/team: vision",
                "Not A Key: vision",
                8,
                "metadata.annotations.Not A Key",
                "'Not A Key' is no key: write one such as example.com/team",
            ),
            (
                "    torch: {}\n",
                "    torch: {}\n    jax: {}\n",
                10,
                "spec.mlPolicy",
                "name one framework: torch, mpi, jax, xgboost or flux",
            ),
            (
                "    torch: {}\n",
                "    flux: {numProcPerNode: 0}\n",
                12,
                "spec.mlPolicy.flux.numProcPerNode",
                "flux needs at least one process per node",
            ),
        ],
    )
    def test_one_thing_wrong(self, old: str, new: str, line: int, path: str, problem: str) -> None:
        assert GOOD.count(old) == 1
        assert validate(GOOD.replace(old, new), pipeline=PIPELINE) == [Remark(line, path, problem)]

    def test_two_containers_of_a_name(self) -> None:
        more = "                    - name: node\n                      image: torch\n"
        (only,) = changed(("                    - name: node\n", f"{more}                    - name: node\n"))
        assert only == f"line 27: error: {POD}.containers[1]: name node is there twice"

    def test_everything_is_said_at_once(self) -> None:
        remarks = changed(("numNodes: 2", "numNodes: two"), ("name: mine", "name: Mine"), ("cpu: 2", "cpus: x"))
        assert [remark.partition(":")[0] for remark in remarks] == ["line 4", "line 11", "line 29"]

    def test_what_the_api_server_writes_is_no_fault_of_the_author(self) -> None:
        taken = "  name: mine\n  uid: abc\n  resourceVersion: '7'\n  generation: 2\n  managedFields: []\n"
        assert changed(("  name: mine\n", f"{taken}  creationTimestamp: 2026-01-01T00:00:00Z\n")) == []

    def test_metadata_that_is_none(self) -> None:
        (only,) = said(GOOD[: GOOD.index("metadata:")] + "metadata: x\n" + GOOD[GOOD.index("spec:") :])
        assert only == "line 3: error: metadata: must be fields, not a text"


class TestMeaning:
    def test_admissions_rules(self) -> None:
        assert changed(
            ("        - name: node\n          t", "        - name: node\n          replicas: 2\n          t")
        ) == [
            (
                "line 17: error: spec.template.spec.replicatedJobs[0].replicas: must be 1, not 2, in job "
                '"node", which runs the trainer: the number of nodes is mlPolicy.numNodes'
            ),
        ]
        (only,) = changed(("                    - name: node", "                    - name: main"))
        assert only.startswith(f'line 24: error: {POD}.containers: must have a container "node"')

    def test_a_deprecated_runtime_is_told_so(self) -> None:
        label = "    trainer.kubeflow.org/support: deprecated\n    trainer.kubeflow.org/framework"
        (only,) = changed(("    trainer.kubeflow.org/framework", label))
        assert only.startswith('line 1: warning: ClusterTrainingRuntime "mine" is deprecated')

    def test_jobs_that_are_not_there(self) -> None:
        depends = (
            "        - name: node\n          dependsOn:\n            - {name: data, status: Complete}\n          t"
        )
        policy = (
            "    spec:\n      successPolicy: {operator: All, targetReplicatedJobs: [node, ghost]}\n      replicated"
        )
        assert changed(("        - name: node\n          t", depends), ("    spec:\n      replicated", policy)) == [
            f"line 15: error: {SPEC}.successPolicy.targetReplicatedJobs[1]: there is no job ghost in this runtime",
            (
                "line 19: error: spec.template.spec.replicatedJobs[0].dependsOn[0].name: "
                "data is no job that stands before node: JobSet starts jobs in order"
            ),
        ]

    def test_jobs_that_a_failure_policy_speaks_of(self) -> None:
        policy = textwrap.indent(
            "failurePolicy:\n  rules:\n    - name: a\n      action: FailJobSet\n      targetReplicatedJobs: [ghost]\n",
            "      ",
        )
        assert changed(("    spec:\n      replicated", f"    spec:\n{policy}      replicated")) == [
            (
                "line 19: error: spec.template.spec.failurePolicy.rules[0].targetReplicatedJobs[0]: "
                "there is no job ghost in this runtime"
            ),
        ]

    def test_run_policy_with_max_restarts_is_accepted(self) -> None:
        policy = "  runPolicy:\n    failurePolicy:\n      maxRestarts: 10\n"
        assert changed(("  template:\n    spec:\n      repl", f"{policy}  template:\n    spec:\n      repl")) == []

    def test_run_policy_with_negative_max_restarts_is_refused(self) -> None:
        policy = "  runPolicy:\n    failurePolicy:\n      maxRestarts: -1\n"
        (remark,) = changed(("  template:\n    spec:\n      repl", f"{policy}  template:\n    spec:\n      repl"))
        assert remark.startswith("line 15: error: spec.runPolicy.failurePolicy.maxRestarts: ")

    def test_volumes_that_are_not_there(self) -> None:
        mount = "image: torch\n                      volumeMounts: [{name: data, mountPath: /data}]"
        assert changed(("image: torch", mount)) == [
            f"line 27: error: {POD}.containers[0].volumeMounts[0].name: the pods of job node have no volume data"
        ]
        volumes = "spec:\n                  volumes: [{name: data, emptyDir: {}}]\n                  containers"
        assert changed(("image: torch", mount), ("spec:\n                  containers", volumes)) == []
        claims = "volumeClaimPolicies: [{templates: [{metadata: {name: data}}]}]"
        assert changed(("image: torch", mount), ("    spec:\n      rep", f"    spec:\n      {claims}\n      rep")) == []

    def test_meaning_waits_for_form(self) -> None:
        broken = ("        - name: node\n          t", "        - name: node\n          replicas: two\n          t")
        assert [remark.partition(": error: ")[2] for remark in changed(broken)] == [
            "spec.template.spec.replicatedJobs[0].replicas: must be a whole number, not a text"
        ]


class TestPlugins:
    def test_a_port_that_is_none(self) -> None:
        annotation = "    trainer.kubeflow.org/port: http"
        assert changed(
            ("    example.com/team: vision", annotation),
            ("    torch: {}", "    jax: {}"),
            ("framework: torch", "framework: jax"),
        ) == [
            (
                "line 8: error: metadata.annotations[trainer.kubeflow.org/port]: the runtime's annotation "
                "trainer.kubeflow.org/port is 'http': write a port, a number from 1 to 65535"
            ),
        ]

    def test_a_container_that_torch_is_to_reach(self) -> None:
        policy = "    torch: {envInjection: {targets: [{jobName: node, containerNames: [side]}]}}"
        assert changed(("    torch: {}", policy)) == [
            (
                "line 9: error: spec: mlPolicy.torch.envInjection names container side of job node, "
                "which the runtime does not have"
            ),
        ]

    def test_those_of_other_packages(self) -> None:
        class Fussy(Plugin):
            name = "Fussy"

            def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
                del old
                yield Finding("spec.runtimeRef", f"no {plan.framework} here")
                yield "and a word of warning"

        remarks = validate(GOOD, pipeline=Pipeline([Fussy(), *(plugin() for plugin in COMMON)]))
        assert remarks == [
            Remark(1, "", "and a word of warning", "warning"),
            Remark(9, "spec", "no torch here"),
        ]


class TestSDK:
    """Nothing is refused for the SDK's sake, but it is said."""

    def test_no_framework(self) -> None:
        (only,) = changed(("trainer.kubeflow.org/framework", "example.com/framework"))
        assert only == (
            "line 5: warning: metadata.labels: without the label trainer.kubeflow.org/framework "
            "the SDK does not list this runtime"
        )

    def test_no_policy(self) -> None:
        (only,) = changed(("  mlPolicy:\n    numNodes: 2\n    torch: {}\n", ""))
        assert only.startswith("line 9: warning: spec: without mlPolicy the SDK lists no runtime at all")

    def test_nobody_trains(self) -> None:
        (only,) = changed(("ancestor-step: trainer", "ancestor-step: tranier"))
        assert only.startswith("line 15: warning: spec.template.spec.replicatedJobs: no job has the label")

    def test_no_image(self) -> None:
        (only,) = changed(("                      image: torch\n", ""))
        assert only.startswith(f"line 25: warning: {POD}.containers[0]: has no image")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("spec", ("spec",)),
        ("spec.replicatedJobs[0].template", ("spec", "replicatedJobs", 0, "template")),
        ("a[1][2]", ("a", 1, 2)),
    ],
)
def test_paths(text: str, path: tuple[str | int, ...]) -> None:
    assert steps(text) == path
    assert written(path) == text


def test_keys_with_dots_are_written_in_brackets() -> None:
    assert written(("metadata", "labels", "example.com/team")) == "metadata.labels[example.com/team]"
