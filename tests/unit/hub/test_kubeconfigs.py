from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.hub.kubeconfigs import refusals, token_end

Tree = dict[str, Any]


def text(cluster: Tree | None = None, user: Tree | None = None, **others: Any) -> str:
    entry = {"server": "https://10.0.0.1:6443", "certificate-authority-data": "YQ==", **(cluster or {})}
    return yaml.safe_dump(
        {
            "current-context": "w",
            "contexts": [{"name": "w", "context": {"cluster": "far", "user": "mk"}}],
            "clusters": [{"name": "far", "cluster": entry}],
            "users": [{"name": "mk", "user": user if user is not None else {"token": "t"}}],
            **others,
        }
    )


@pytest.mark.parametrize(
    "server", ["https://10.0.0.1:6443", "https://[fd00::1]:6443", "https://Api.Example.com/far", "http://a"]
)
def test_addresses_that_kueue_takes(server: str) -> None:
    assert refusals(text({"server": server})) == ()


@pytest.mark.parametrize(
    "server", ["https://", "https://under_score.example", "https://[half", "https://-a.b", "just words"]
)
def test_addresses_that_kueue_does_not_take(server: str) -> None:
    (problem,) = refusals(text({"server": server}))
    assert "neither an IP address nor a DNS name" in problem
    assert "'far'" in problem


def test_a_client_certificate_inline_is_fine() -> None:
    assert refusals(text(user={"client-certificate-data": "YQ==", "client-key-data": "YQ=="})) == ()


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        ({"insecure-skip-tls-verify": True}, None, "insecure-skip-tls-verify"),
        ({"certificate-authority": "/ca.crt"}, None, "certificate-authority-data"),
        ({"server": ""}, None, "has no server"),
        (None, {"tokenFile": "/token"}, "tokenFile: write it into the kubeconfig as token"),
        (None, {"username": "a", "password": "b"}, "user name and password"),
        (None, {"exec": {"command": "aws"}}, "runs a program (exec)"),
        (None, {"auth-provider": {"name": "gcp"}}, "auth-provider"),
        (None, {"client-certificate": "/c", "client-key-data": "YQ=="}, "client-certificate-data"),
        (None, {"client-certificate-data": "YQ==", "client-key": "/k"}, "client-key-data"),
    ],
)
def test_what_kueue_refuses_is_named_with_its_entry(cluster: Tree | None, user: Tree | None, expected: str) -> None:
    (problem,) = refusals(text(cluster, user))
    assert expected in problem
    assert ("'mk'" if user else "'far'") in problem


def test_everything_wrong_is_said_at_once() -> None:
    bad = text({"insecure-skip-tls-verify": True, "certificate-authority": "/c"}, {"tokenFile": "/t", "exec": {"a": 1}})
    assert len(refusals(bad)) == 4


def test_entries_that_are_not_current_count_where_they_do_for_kueue() -> None:
    users = [
        {"name": "mk", "user": {"token": "t"}},
        {"name": "me", "user": {"tokenFile": "/t", "exec": {"command": "x"}}},
    ]
    (problem,) = refusals(text(users=users))
    assert "user 'me' names a tokenFile" in problem


@pytest.mark.parametrize(("content", "expected"), [("a: [", "not YAML"), ("", "empty"), ("- a", "empty")])
def test_what_is_no_kubeconfig_is_said_in_one_line(content: str, expected: str) -> None:
    (problem,) = refusals(content)
    assert expected in problem
    assert "\n" not in problem


def token(**claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJh.{middle}.c2ln"


def test_a_service_account_token_says_when_it_ends() -> None:
    end = datetime(2026, 9, 30, 12, tzinfo=UTC)
    assert token_end(text(user={"token": token(exp=end.timestamp())})) == end


@pytest.mark.parametrize("given_token", ["opaque", "a.b.c", token(), token(exp="soon"), token(exp=1e300), ""])
def test_a_token_that_does_not_say_is_no_error(given_token: str) -> None:
    assert token_end(text(user={"token": given_token})) is None


@pytest.mark.parametrize("content", ["a: [", "- 1", "current-context: [1]", "users: 3"])
def test_no_token_is_no_error(content: str) -> None:
    assert token_end(content) is None


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["clusters", "users", "contexts", "name", "cluster", "user", "context", "server", "token"]
                )
                | st.just("current-context"),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_form_of_yaml_breaks_the_judge(tree: Any) -> None:
    content = yaml.safe_dump(tree)
    assert all(isinstance(problem, str) for problem in refusals(content))
    token_end(content)
