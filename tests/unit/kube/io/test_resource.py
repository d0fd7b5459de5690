from __future__ import annotations

import pytest

from trainplane.kube.resource import NAMESPACES, PODS, Key, Resource

JOBS = Resource("batch", "v1", "jobs", "Job")


@pytest.mark.parametrize(
    ("resource", "arguments", "expected"),
    [
        (PODS, {}, "/api/v1/pods"),
        (PODS, {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (PODS, {"namespace": "a", "name": "b"}, "/api/v1/namespaces/a/pods/b"),
        (PODS, {"namespace": "a", "name": "b", "subresource": "log"}, "/api/v1/namespaces/a/pods/b/log"),
        (JOBS, {"namespace": "a", "name": "b"}, "/apis/batch/v1/namespaces/a/jobs/b"),
        (NAMESPACES, {"name": "a"}, "/api/v1/namespaces/a"),
        (NAMESPACES, {"name": "system:node"}, "/api/v1/namespaces/system:node"),
        (PODS, {"namespace": "a", "name": "b/../c"}, "/api/v1/namespaces/a/pods/b%2F..%2Fc"),
        (PODS, {"namespace": "a?b", "name": "c#d"}, "/api/v1/namespaces/a%3Fb/pods/c%23d"),
    ],
)
def test_paths(resource: Resource, arguments: dict[str, str], expected: str) -> None:
    assert resource.path(**arguments) == expected


@pytest.mark.parametrize(
    ("resource", "arguments", "says"),
    [
        (PODS, {"name": "b"}, "in which namespace"),
        (NAMESPACES, {"namespace": "a"}, "cluster-scoped"),
        (PODS, {"namespace": "a", "subresource": "log"}, "needs the name"),
        (PODS, {"namespace": "a", "name": ".."}, "cannot be the name"),
        (PODS, {"namespace": "a", "name": ""}, "cannot be the name"),
        (PODS, {"namespace": "..", "name": "a"}, "cannot be the name"),
    ],
)
def test_a_path_never_addresses_something_else(resource: Resource, arguments: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resource.path(**arguments)


def test_api_version_and_keys() -> None:
    assert (PODS.api_version, JOBS.api_version) == ("v1", "batch/v1")
    assert str(Key("ns", "name")) == "ns/name"
    assert str(Key("", "name")) == "name"
    assert Key("a", "z") < Key("b", "a")
    assert len({PODS, Resource("", "v1", "pods", "Pod")}) == 1
