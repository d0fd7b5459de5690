from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.api.tree import get
from trainplane.render.merge import JOBSET_SPEC, JOBSET_SPEC_ADDING_TOLERATIONS, METADATA, MergeError, merged


def spec(**pod: Any) -> dict[str, Any]:
    return {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}


def merged_pod(pod: dict[str, Any], *patches: dict[str, Any]) -> Any:
    tree = spec(**pod)
    for patch in patches:
        tree = merged(tree, spec(**patch))
    return get(tree, "replicatedJobs", ("name", "node"), "template", "spec", "template", "spec")


def merged_container(container: dict[str, Any], patch: dict[str, Any]) -> Any:
    pod = merged_pod({"containers": [{"name": "c", **container}]}, {"containers": [{"name": "c", **patch}]})
    return pod["containers"][0]


def test_two_entries_of_one_key_in_a_patch_are_refused() -> None:
    mounts = [{"name": name, "mountPath": "/data"} for name in ("a", "b")]
    with pytest.raises(MergeError, match="mountPath /data is there twice"):
        merged_container({}, {"volumeMounts": mounts})


class TestObjects:
    def test_fields_merge_one_by_one(self) -> None:
        pod = merged_pod({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"b": "3", "c": "4"}})
        assert pod["nodeSelector"] == {"a": "1", "b": "3", "c": "4"}

    def test_deep_objects_too(self) -> None:
        have = {"securityContext": {"fsGroup": 1, "seLinuxOptions": {"level": "x", "role": "r"}}}
        pod = merged_pod(have, {"securityContext": {"runAsUser": 2, "seLinuxOptions": {"level": "y"}}})
        assert pod["securityContext"] == {"fsGroup": 1, "runAsUser": 2, "seLinuxOptions": {"level": "y", "role": "r"}}

    def test_a_scalar_is_replaced(self) -> None:
        pod = merged_pod({"terminationGracePeriodSeconds": 30}, {"terminationGracePeriodSeconds": 300})
        assert pod["terminationGracePeriodSeconds"] == 300

    def test_zero_false_and_the_empty_text_are_said_on_purpose(self) -> None:
        pod = merged_pod(
            {"serviceAccountName": "sa", "terminationGracePeriodSeconds": 30, "hostNetwork": True},
            {"serviceAccountName": "", "terminationGracePeriodSeconds": 0, "hostNetwork": False},
        )
        assert pod == {"serviceAccountName": "", "terminationGracePeriodSeconds": 0, "hostNetwork": False}

    def test_a_null_removes(self) -> None:
        assert merged_pod({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"a": None}}) == {
            "nodeSelector": {"b": "2"}
        }

    def test_a_null_of_nothing_leaves_nothing(self) -> None:
        assert merged_pod({}, {"affinity": {"nodeAffinity": None, "podAffinity": {"x": 1}}}) == {
            "affinity": {"podAffinity": {"x": 1}}
        }

    def test_another_type_is_replaced(self) -> None:
        assert merged_pod({"affinity": "odd"}, {"affinity": {"podAffinity": {}}}) == {"affinity": {"podAffinity": {}}}

    def test_an_empty_object_is_made_where_there_is_none(self) -> None:
        assert merged_pod({}, {"securityContext": {}}) == {"securityContext": {}}


class TestLists:
    """Which lists merge, and by what."""

    @pytest.mark.parametrize(
        ("field", "key"),
        [
            ("imagePullSecrets", "name"),
            ("schedulingGates", "name"),
            ("hostAliases", "ip"),
            ("topologySpreadConstraints", "topologyKey"),
            ("ephemeralContainers", "name"),
            ("initContainers", "name"),
            ("containers", "name"),
        ],
    )
    def test_a_pods_lists_merge_by_key(self, field: str, key: str) -> None:
        pod = merged_pod({field: [{key: "a", "old": 1}, {key: "b", "old": 1}]}, {field: [{key: "b", "new": 2}]})
        assert pod[field] == [{key: "a", "old": 1}, {key: "b", "old": 1, "new": 2}]

    @pytest.mark.parametrize(
        ("field", "key"), [("ports", "containerPort"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")]
    )
    def test_a_containers_lists_merge_by_key(self, field: str, key: str) -> None:
        container = merged_container({field: [{key: 1, "old": 1}, {key: 2, "old": 1}]}, {field: [{key: 2, "new": 2}]})
        assert container[field] == [{key: 1, "old": 1}, {key: 2, "old": 1, "new": 2}]

    def test_init_containers_merge_inside_as_containers_do(self) -> None:
        pod = merged_pod(
            {"initContainers": [{"name": "i", "env": [{"name": "A", "value": "1"}]}]},
            {"initContainers": [{"name": "i", "env": [{"name": "A", "value": "2"}]}]},
        )
        assert pod["initContainers"][0]["env"] == [{"name": "A", "value": "2"}]

    def test_one_volume_may_be_mounted_twice(self) -> None:
        container = merged_container(
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}]}, {"volumeMounts": [{"name": "v", "mountPath": "/b"}]}
        )
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/a", "/b"}

    @pytest.mark.parametrize("field", ["tolerations", "readinessGates", "unheardOf"])
    def test_other_lists_are_replaced(self, field: str) -> None:
        assert merged_pod({field: [{"key": "a"}]}, {field: [{"key": "b"}]}) == {field: [{"key": "b"}]}

    def test_lists_inside_affinity_are_replaced(self) -> None:
        def terms(key: str) -> dict[str, Any]:
            return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key}]}]}}}

        pod = merged_pod({"affinity": {**terms("a"), "podAffinity": {"x": 1}}}, {"affinity": terms("b")})
        assert pod["affinity"] == {**terms("b"), "podAffinity": {"x": 1}}

    def test_an_empty_list_changes_nothing(self) -> None:
        have = {"tolerations": [{"key": "a"}], "volumes": [{"name": "v"}]}
        assert merged_pod(have, {"tolerations": [], "volumes": []}) == have

    def test_a_merged_list_where_there_was_none(self) -> None:
        assert merged_pod({}, {"imagePullSecrets": [{"name": "s", "x": None}]}) == {"imagePullSecrets": [{"name": "s"}]}

    def test_depends_on_merges_by_name(self) -> None:
        have = {"replicatedJobs": [{"name": "node", "dependsOn": [{"name": "a", "status": "Ready"}]}]}
        change = {"replicatedJobs": [{"name": "node", "dependsOn": [{"name": "a", "status": "Complete"}]}]}
        assert merged(have, change) == change


class TestOrder:
    """As Kubernetes weaves: what stays keeps its place, what is added comes before what follows."""

    @pytest.mark.parametrize(
        ("present", "patch", "result"),
        [
            ("ab", "b", "ab"),
            ("ab", "a", "ab"),
            ("abc", "ca", "bca"),
            ("ab", "c", "cab"),
            ("ab", "bc", "abc"),
            ("ab", "ca", "cab"),
            ("abcd", "cxb", "acxbd"),
            ("", "ab", "ab"),
        ],
    )
    def test_order(self, present: str, patch: str, result: str) -> None:
        pod = merged_pod(
            {"imagePullSecrets": [{"name": name} for name in present]},
            {"imagePullSecrets": [{"name": name} for name in patch]},
        )
        assert "".join(entry["name"] for entry in pod["imagePullSecrets"]) == result


class TestWhereKubernetesMakesInvalidPods:
    def test_a_variable_is_replaced_as_a_whole(self) -> None:
        source = {"secretKeyRef": {"name": "s", "key": "k"}}
        container = merged_container(
            {"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "valueFrom": source}]}
        )
        assert container["env"] == [{"name": "A", "valueFrom": source}]

    def test_a_variables_source_too(self) -> None:
        field = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        secret = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
        assert merged_container({"env": [field]}, {"env": [secret]})["env"] == [secret]

    def test_a_volume_keeps_the_patchs_source_alone(self) -> None:
        pod = merged_pod(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        )
        assert pod["volumes"] == [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]

    def test_a_volume_of_the_same_source_merges(self) -> None:
        pod = merged_pod(
            {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]},
        )
        assert pod["volumes"] == [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]

    def test_a_volume_may_become_empty_dir(self) -> None:
        pod = merged_pod(
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, {"volumes": [{"name": "v", "emptyDir": {}}]}
        )
        assert pod["volumes"] == [{"name": "v", "emptyDir": {}}]

    @pytest.mark.parametrize("level", ["job", "pod"])
    @pytest.mark.parametrize("have", [{}, {"metadata": {"labels": {"old": "1"}}}])
    def test_of_metadata_labels_and_annotations_are_taken(self, level: str, have: dict[str, Any]) -> None:
        metadata = {"labels": {"l": "1"}, "annotations": {"a": "2"}, "finalizers": ["f"], "name": "n"}

        def at(value: dict[str, Any]) -> dict[str, Any]:
            template = value if level == "job" else {"spec": {"template": value}}
            return {"replicatedJobs": [{"name": "node", "template": template}]}

        result = merged(at(have), at({"metadata": metadata}))
        kept = {"labels": {**have.get("metadata", {}).get("labels", {}), "l": "1"}, "annotations": {"a": "2"}}
        assert result == at({"metadata": kept})

    def test_the_same_for_metadata_alone(self) -> None:
        assert merged({"labels": {"a": "1"}}, {"labels": {"b": "2"}, "name": "x"}, METADATA) == {
            "labels": {"a": "1", "b": "2"}
        }

    @pytest.mark.parametrize(
        "patch",
        [
            {"$patch": "replace"},
            {"nodeSelector": {"$retainKeys": ["a"]}},
            {"containers": [{"name": "c", "$patch": "delete"}]},
        ],
    )
    def test_a_directive_is_refused(self, patch: dict[str, Any]) -> None:
        with pytest.raises(MergeError, match="directive"):
            merged_pod({"nodeSelector": {}, "containers": [{"name": "c"}]}, patch)

    def test_an_entry_without_its_key_is_refused(self) -> None:
        with pytest.raises(MergeError, match=r"volumeMounts\[1\]: needs mountPath"):
            merged_container({"volumeMounts": []}, {"volumeMounts": [{"mountPath": "/a"}, {"name": "v"}]})

    def test_the_error_says_where(self) -> None:
        with pytest.raises(MergeError) as error:
            merged_container({}, {"env": [{"value": "1"}]})
        path = "replicatedJobs[name=node].template.spec.template.spec.containers[name=c].env[0]"
        assert error.value.path == path


class TestAddingTolerations:
    def test_tolerations_add_up(self) -> None:
        have, adds = {"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "b"}, {"key": "c"}]}
        result = merged(spec(**have), spec(**adds), JOBSET_SPEC_ADDING_TOLERATIONS)
        assert result == spec(tolerations=[{"key": "a"}, {"key": "b"}, {"key": "c"}])

    def test_where_there_were_none(self) -> None:
        result = merged(spec(), spec(tolerations=[{"key": "a"}]), JOBSET_SPEC_ADDING_TOLERATIONS)
        assert result == spec(tolerations=[{"key": "a"}])

    def test_all_else_merges_as_ever(self) -> None:
        have, adds = spec(containers=[{"name": "c", "x": 1}]), spec(containers=[{"name": "c", "y": 2}])
        assert merged(have, adds, JOBSET_SPEC_ADDING_TOLERATIONS) == merged(have, adds, JOBSET_SPEC)


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.integers(), st.text(max_size=3), st.booleans())
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=4)


def keyed(key: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    entry = st.fixed_dictionaries({key: NAMES}, optional={**fields, "unknown": TREES})
    return st.lists(entry, max_size=3, unique_by=lambda one: str(one[key]))


CONTAINERS = keyed(
    "name",
    env=keyed("name", value=st.text(max_size=2), valueFrom=TREES),
    volumeMounts=keyed("mountPath", name=NAMES),
    securityContext=st.dictionaries(NAMES, TREES, max_size=2),
)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "containers": CONTAINERS,
        "volumes": keyed("name", emptyDir=st.just({}), hostPath=st.just({"path": "/x"})),
        "nodeSelector": st.dictionaries(NAMES, st.text(max_size=2)),
        "affinity": st.dictionaries(NAMES, TREES, max_size=2),
        "tolerations": st.lists(st.fixed_dictionaries({"key": NAMES}), max_size=2),
        "unknown": TREES,
    },
)


class TestProperties:
    """Each on a few dozen random pods; the shapes are small, so these say as much as hundreds."""

    @settings(max_examples=40)
    @given(PODS, PODS)
    def test_inputs_are_not_changed(self, pod: dict[str, Any], patch: dict[str, Any]) -> None:
        tree, change = spec(**pod), spec(**patch)
        before = copy.deepcopy((tree, change))
        result = merged(tree, change)
        assert (tree, change) == before
        _spoil(result)
        assert (tree, change) == before

    @settings(max_examples=40)
    @given(PODS, PODS)
    def test_twice_is_once(self, pod: dict[str, Any], patch: dict[str, Any]) -> None:
        once = merged(spec(**pod), spec(**patch))
        assert merged(once, spec(**patch)) == once

    @settings(max_examples=40)
    @given(PODS, PODS)
    def test_what_the_patch_does_not_name_survives(self, pod: dict[str, Any], patch: dict[str, Any]) -> None:
        pod = {**pod, "notInAnyPatch": {"deep": [1]}}
        assert merged_pod(pod, patch)["notInAnyPatch"] == {"deep": [1]}

    @settings(max_examples=40)
    @given(PODS)
    def test_nothing_changes_nothing(self, pod: dict[str, Any]) -> None:
        assert merged(spec(**pod), {}) == spec(**pod)
        assert merged(spec(**pod), spec()) == spec(**pod)

    @settings(max_examples=40)
    @given(PODS, PODS)
    def test_every_entry_is_there_once(self, pod: dict[str, Any], patch: dict[str, Any]) -> None:
        result = merged_pod(pod, patch)
        for field in ("containers", "volumes"):
            found = [entry["name"] for entry in result.get(field, [])]
            wanted = {entry["name"] for entry in [*pod.get(field, []), *patch.get(field, [])]}
            assert sorted(found) == sorted(wanted)


def _spoil(tree: Any) -> None:
    """Change every object and list of a tree, to show that it shares none with another."""
    inner = list(tree.values()) if isinstance(tree, dict) else list(tree) if isinstance(tree, list) else []
    for value in inner:
        _spoil(value)
    if isinstance(tree, dict):
        tree["spoiled"] = True
    elif isinstance(tree, list):
        tree.append("spoiled")
