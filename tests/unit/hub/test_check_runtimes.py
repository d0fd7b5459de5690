from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.hub.check_objects import NAMESPACE, altered, cluster_facts, content, hub_facts, runtime
from trainplane.api import tree as trees
from trainplane.hub import runtimes
from trainplane.hub.check.facts import Unseen
from trainplane.hub.check.runtimes import judge_priorities, judge_runtimes
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    NAMESPACES,
    PRIORITY_CLASSES,
    TRAINING_RUNTIMES,
    WORKLOAD_PRIORITY_CLASSES,
)

Tree = dict[str, Any]
CONTAINER = (
    *("spec", "template", "spec", "replicatedJobs", ("name", "node"), "template", "spec", "template", "spec"),
    *("containers", ("name", "node")),
)


def with_container(tree: Tree, **fields: Any) -> Tree:
    for key, value in fields.items():
        tree = trees.put(tree, *CONTAINER, key, value=value)
    return tree


# -- what is compared


def test_only_what_means_something_on_every_cluster_is_shared() -> None:
    tree = runtime()
    tree["metadata"] |= {"uid": "u", "resourceVersion": "5", "annotations": {"a": "b"}, "managedFields": []}
    tree["metadata"]["labels"]["trainer.kubeflow.org/managed-by"] = "runtimes-installer"
    tree["status"] = {"any": 1}
    shared = runtimes.shared(tree)
    assert shared["metadata"] == {"name": "torch", "labels": {"trainer.kubeflow.org/framework": "torch"}}
    assert set(shared) == {"apiVersion", "kind", "metadata", "spec"}
    labels = {"team": "platform", "trainer.kubeflow.org/managed-by": "runtimes-installer"}
    assert runtimes.own_marks(tree) == {"labels": labels, "annotations": {"a": "b"}}


def test_the_shared_part_is_a_copy() -> None:
    tree = runtime()
    runtimes.shared(tree)["spec"]["mlPolicy"]["numNodes"] = 9
    assert tree["spec"]["mlPolicy"]["numNodes"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"requests": {"cpu": "0.5"}}, {"requests": {"cpu": "500m"}}),
        ({"requests": {"cpu": 2}}, {"requests": {"cpu": "2"}}),
        ({"limits": {"memory": "1024Mi"}}, {"limits": {"memory": "1Gi"}}),
        ({"limits": {"a": "1", "b": "2"}}, {"limits": {"b": "2", "a": "1"}}),
        ({"limits": None}, {}),
    ],
)
def test_two_ways_to_write_the_same_are_equal(one: Tree, other: Tree) -> None:
    pair = [with_container(runtime(), resources=resources) for resources in (one, other)]
    assert runtimes.equal(*pair)
    assert runtimes.diff(pair[0], pair[1], "a", "b") == ""


def test_what_is_no_amount_is_compared_as_it_is() -> None:
    odd = with_container(runtime(), resources={"limits": {"cpu": "many"}, "requests": "none"})
    assert runtimes.equal(odd, odd)
    assert not runtimes.equal(odd, runtime())


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: with_container(tree, image="other"),
        lambda tree: with_container(tree, env=[{"name": "A", "value": "1"}]),
        lambda tree: trees.put(tree, "spec", "mlPolicy", "numNodes", value=2),
        lambda tree: trees.put(tree, "spec", "template", "spec", "replicatedJobs", 0, "replicas", value=2),
        lambda tree: trees.put(tree, *CONTAINER[:-2], "tolerations", value=[{"operator": "Exists"}]),
    ],
)
def test_what_changes_the_pods_that_kueue_computes_is_no_small_difference(change: Any) -> None:
    assert not runtimes.equal(runtime(), change(runtime()))
    assert not runtimes.would_run_alike(runtime(), change(runtime()))


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: trees.put(tree, *CONTAINER[:-2], "nodeSelector", value={"zone": "a"}),
        lambda tree: trees.put(tree, "spec", "template", "spec", "ttlSecondsAfterFinished", value=5),
        lambda tree: trees.put(tree, "metadata", "labels", "trainer.kubeflow.org/framework", value="jax"),
    ],
)
def test_what_kueue_does_not_compare_is_a_difference_all_the_same(change: Any) -> None:
    assert not runtimes.equal(runtime(), change(runtime()))
    assert runtimes.would_run_alike(runtime(), change(runtime()))


# -- the difference, to read


def test_a_difference_says_where_it_is_and_leads_from_worker_to_hub() -> None:
    text = runtimes.diff(runtime(image="train:2"), runtime(), "worker1", "hub")
    lines = text.splitlines()
    assert lines[:2] == ["--- worker1", "+++ hub"]
    container = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node]"
    assert lines[2] == f"@@ {container}.image @@"
    assert [line.strip() for line in lines if line.startswith("-  ")] == ["-  image: train:2"]
    assert [line.strip() for line in lines if line.startswith("+  ")] == ["+  image: train:1"]


def test_changes_far_from_each_other_are_two_hunks() -> None:
    changed = trees.put(runtime(image="x"), "spec", "mlPolicy", "numNodes", value=4)
    heads = [line for line in runtimes.diff(changed, runtime(), "a", "b").splitlines() if line.startswith("@@")]
    assert len(heads) == 2
    assert heads[0] == "@@ spec.mlPolicy.numNodes @@"


def test_a_runtime_that_is_not_there_is_all_new() -> None:
    lines = runtimes.diff(None, runtime(), "worker1", "hub").splitlines()
    assert lines[2] == "@@ the whole object @@"
    assert all(line.startswith("+") for line in lines[3:])
    assert "+  name: torch" in lines


def test_texts_of_several_lines_and_values_that_look_like_others_stay_readable() -> None:
    changed = with_container(runtime(), args=["yes", "", "a\nb"], env=[{"name": "S", "value": "one\ntwo"}], stdin=True)
    text = runtimes.diff(runtime(), changed, "a", "b")
    for line in ("- 'yes'", "- ''", "value: |", "  one", "  two", "stdin: true"):
        assert any(shown.lstrip("+ ") == line.strip() or shown.endswith(line) for shown in text.splitlines()), line


KEYS = st.sampled_from(["name", "image", "env", "limits", "spec", "a"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab1m\n ", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=3))
def test_the_normal_form_is_one_and_a_difference_is_shown_whenever_there_is_one(one: Tree, other: Tree) -> None:
    pair = [{"metadata": {"name": "x"}, "spec": spec} for spec in (one, other)]
    assert runtimes.normal(runtimes.normal(pair[0])) == runtimes.normal(pair[0])
    if runtimes.equal(*pair):
        assert runtimes.diff(pair[0], pair[1], "a", "b") == ""
        assert runtimes.would_run_alike(*pair)


@settings(deadline=None)
@given(st.dictionaries(KEYS, st.integers() | st.text("abc", min_size=1), max_size=4), KEYS, st.integers(100, 200))
def test_a_changed_leaf_is_in_the_difference(spec: Tree, key: str, value: int) -> None:
    pair = [{"metadata": {"name": "x"}, "spec": each} for each in (spec, spec | {key: value})]
    if spec.get(key) != value:
        lines = runtimes.diff(pair[0], pair[1], "a", "b").splitlines()
        assert f"{key}: {value}" in {line[1:].strip() for line in lines if line.startswith("+")}


# -- what the check says


def test_equal_runtimes_are_counted_and_nothing_is_said() -> None:
    check = judge_runtimes(hub_facts(), "worker1", cluster_facts(content()), (NAMESPACE,))
    assert check.findings == ()
    assert check.summary == "2 of 2 equal the hub's"


def test_a_missing_runtime_stops_jobs_and_sync_is_the_way() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES)
    (finding,) = judge_runtimes(hub_facts(), "worker1", worker, (NAMESPACE,)).findings
    assert finding.level == "stops"
    assert finding.problem.startswith("ClusterTrainingRuntime torch does not exist here")
    assert finding.remedy == "trainplane fleet sync --apply"


def test_a_runtime_that_differs_where_kueue_looks_stops_jobs_with_the_difference() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    (finding,) = judge_runtimes(hub_facts(), "worker1", worker, (NAMESPACE,)).findings
    assert finding.level == "stops"
    assert "gives a job that uses it back" in finding.problem
    assert finding.diff.startswith("--- worker1\n+++ hub\n@@ spec.template")


def test_a_runtime_that_differs_elsewhere_is_worth_a_look() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, runtime(nodeSelector={"a": "b"}))
    (finding,) = judge_runtimes(hub_facts(), "worker1", worker, (NAMESPACE,)).findings
    assert finding.level == "warns"
    assert finding.diff


def test_runtimes_of_namespaces_count_where_jobs_come_from_only() -> None:
    worker = altered(cluster_facts(content()), TRAINING_RUNTIMES)
    (finding,) = judge_runtimes(hub_facts(), "worker1", worker, (NAMESPACE,)).findings
    assert finding.problem.startswith("TrainingRuntime research/mine does not exist here")
    assert judge_runtimes(hub_facts(), "worker1", worker, ("other",)).findings == ()


def test_a_runtime_in_a_namespace_that_is_not_there_is_not_spoken_of() -> None:
    worker = altered(altered(cluster_facts(content()), TRAINING_RUNTIMES), NAMESPACES)
    assert judge_runtimes(hub_facts(), "worker1", worker, (NAMESPACE,)).findings == ()


def test_runtimes_that_the_worker_has_beside_are_its_own_affair() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, runtime(), runtime("local"))
    assert judge_runtimes(hub_facts(), "worker1", worker, ()).findings == ()


def test_runtimes_that_may_not_be_seen_are_said_to_be_unseen() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, Unseen("forbidden", "403"))
    (finding,) = judge_runtimes(hub_facts(), "worker1", worker, ()).findings
    assert finding.level == "unseen"
    assert "clustertrainingruntimes.trainer.kubeflow.org" in finding.problem
    assert "--worker NAME[=CONTEXT]" in finding.remedy
    broken = altered(worker, CLUSTER_TRAINING_RUNTIMES, Unseen("failed", "timed out"))
    (finding,) = judge_runtimes(hub_facts(), "worker1", broken, ()).findings
    assert "timed out" in finding.problem


def test_a_resource_that_is_not_served_is_left_to_the_versions() -> None:
    worker = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, Unseen("missing", "404"))
    assert judge_runtimes(hub_facts(), "worker1", worker, ()).findings == ()


def test_priority_classes_that_are_equal_are_listed() -> None:
    check = judge_priorities(hub_facts(), cluster_facts(content()), ())
    assert check.findings == ()
    assert check.summary == "WorkloadPriorityClasses: high"


def test_a_missing_workload_priority_class_and_one_of_another_value_are_named() -> None:
    gone = altered(cluster_facts(content()), WORKLOAD_PRIORITY_CLASSES)
    (finding,) = judge_priorities(hub_facts(), gone, ()).findings
    assert "WorkloadPriorityClass high does not exist here" in finding.problem
    other = altered(gone, WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 3})
    (finding,) = judge_priorities(hub_facts(), other, ()).findings
    assert "value 3 here and 10 on the hub" in finding.problem
    hidden = altered(gone, WORKLOAD_PRIORITY_CLASSES, Unseen("forbidden", "403"))
    (finding,) = judge_priorities(hub_facts(), hidden, ()).findings
    assert finding.level == "unseen"


def test_a_priority_class_that_a_runtime_names_must_be_there() -> None:
    hub = altered(hub_facts(), CLUSTER_TRAINING_RUNTIMES, runtime(priorityClassName="urgent"))
    assert judge_priorities(hub, cluster_facts(content()), ()).findings == ()
    gone = altered(cluster_facts(content()), PRIORITY_CLASSES)
    (finding,) = judge_priorities(hub, gone, ()).findings
    assert finding.level == "stops"
    assert "PriorityClass urgent" in finding.problem
    hidden = altered(gone, PRIORITY_CLASSES, Unseen("forbidden", "403"))
    (finding,) = judge_priorities(hub, hidden, ()).findings
    assert finding.level == "unseen"
    system = altered(hub_facts(), CLUSTER_TRAINING_RUNTIMES, runtime(priorityClassName="system-node-critical"))
    assert judge_priorities(system, gone, ()).findings == ()
    assert judge_priorities(hub_facts(), hidden, ()).findings == ()
    mine = runtime("mine", namespace=NAMESPACE, priorityClassName="urgent")
    hub = altered(hub_facts(), TRAINING_RUNTIMES, mine)
    assert judge_priorities(hub, gone, ()).findings == ()
    assert len(judge_priorities(hub, gone, (NAMESPACE,)).findings) == 1
