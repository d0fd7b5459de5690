from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.fakeworker import client_pair, cluster, tree
from trainplane.hub.kubeconfigs import judge
from trainplane.kube.credentials import Credential, StaticCredentials, bearer
from trainplane.kube.execplugin import API_VERSIONS
from trainplane.kube.validity import token_end

if TYPE_CHECKING:
    from collections.abc import Callable

Tree = dict[str, Any]

SERVER = "https://10.0.0.1:6443"
CERTIFICATE, KEY = client_pair()


def text(cluster_entry: Tree | None = None, user: Tree | None = None, **others: Any) -> str:
    made = tree(SERVER) | others
    if cluster_entry is not None:
        made["clusters"][0]["cluster"] |= cluster_entry
    if user is not None:
        made["users"][0]["user"] = user
    return yaml.safe_dump(made)


def refusals(content: str) -> tuple[str, ...]:
    judged = judge(content, {})
    assert (judged.config is None) == bool(judged.refusals)
    return judged.refusals


def test_the_config_is_what_the_kubeconfig_says() -> None:
    more = {"proxy-url": "http://ann:x@proxy:3128", "disable-compression": True, "server": "https://api:443/k8s/c-1"}
    user = {
        "token": "t",
        "client-certificate-data": CERTIFICATE,
        "client-key-data": KEY,
        "as": "ann",
        "as-groups": ["g"],
    }
    context = {"cluster": "worker", "user": "multikueue", "namespace": "team"}
    config = judge(text(more, user, contexts=[{"name": "worker", "context": context}]), {}).config
    assert config is not None
    assert (config.server, config.namespace, config.proxy) == ("https://api:443/k8s/c-1", "team", more["proxy-url"])
    assert (config.tls.ca, config.tls.certificate, config.tls.key) == tuple(
        base64.b64decode(data).decode() for data in (cluster("")["certificate-authority-data"], CERTIFICATE, KEY)
    )
    assert (config.tls.server_name, config.tls.insecure, config.compression) == ("localhost", False, False)
    assert config.headers == (("Impersonate-User", "ann"), ("Impersonate-Group", "g"))


async def test_a_token_is_the_credential() -> None:
    config = judge(text(user={"token": "t"}), {}).config
    assert config is not None
    assert type(config.credentials) is StaticCredentials
    assert await config.credentials.current() == bearer("t")
    config = judge(text(user={}), {}).config
    assert config is not None
    assert await config.credentials.current() == Credential()


def test_this_processs_proxy_is_used_where_the_kubeconfig_names_none() -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    for entry, proxy in (({}, "http://env:1"), ({"proxy-url": "https://entry:1"}, "https://entry:1")):
        config = judge(text(entry), environ).config
        assert config is not None
        assert config.proxy == proxy
    (problem,) = judge(text(), {"HTTPS_PROXY": "socks5://env:1"}).refusals
    assert problem.startswith("HTTPS_PROXY of the environment: ")


KUBECTL = f"""
apiVersion: v1
kind: Config
preferences: {{}}
clusters:
- cluster:
    certificate-authority-data: {cluster("")["certificate-authority-data"]}
    extensions:
    - extension:
        last-update: Tue, 01 Sep 2026 10:00:00 CEST
        provider: minikube.sigs.k8s.io
        numbers: [1, 2.5, 0x10, null, yes, 2026-09-01]
      name: cluster_info
    server: https://192.168.49.2:8443
  name: minikube
contexts:
- context:
    cluster: minikube
    extensions:
    - extension: {{version: v1.36.0}}
      name: context_info
    namespace: default
    user: minikube
  name: minikube
current-context: minikube
users:
- name: minikube
  user:
    client-certificate-data: {CERTIFICATE}
    client-key-data: {KEY}
"""
KUEUE = f"""
apiVersion: v1
kind: Config
clusters:
- name: cluster1
  cluster:
    certificate-authority-data: {cluster("")["certificate-authority-data"]}
    server: https://Api.Example.com
contexts:
- name: multikueue-sa@cluster1
  context:
    cluster: cluster1
    user: multikueue-sa
current-context: multikueue-sa@cluster1
users:
- name: multikueue-sa
  user:
    token: eyJhbGciOiJSUzI1NiJ9.e30.c2ln
"""
NOTHING_SET = {
    "insecure-skip-tls-verify": False,
    "certificate-authority": "",
    "proxy-url": "",
    "tls-server-name": None,
    "extensions": None,
}
NOBODY = {"exec": None, "auth-provider": None, "username": "", "password": "", "tokenFile": "", "token": "t", "as": ""}


@pytest.mark.parametrize(
    "content",
    [
        KUBECTL,
        KUEUE,
        json.dumps(yaml.safe_load(KUEUE)),
        json.dumps(yaml.safe_load(KUEUE), indent=2),
        text(NOTHING_SET, NOBODY),
        text(extensions=[], preferences={"colors": True}),
        text(users=None, contexts=[{"name": "worker", "context": {"cluster": "worker"}}]),
        text(users=[{"name": "multikueue"}, {"name": "other", "user": {}}]),
        "---\n" + KUEUE + "...\n",
    ],
    ids=["minikube", "kueue", "json", "indented json", "nothing set", "rest", "nobody", "empty", "marked"],
)
def test_kubeconfigs_as_tools_write_them_are_used(content: str) -> None:
    assert refusals(content) == ()


@pytest.mark.parametrize(
    "server",
    [
        SERVER,
        "https://[fd00::1]:6443",
        "https://Api.Example.com/k8s/clusters/c-m-1",
        "https://a",
        "https://a." + "b" * 63 + ".example",
        "https://a:65535/",
    ],
)
def test_addresses_that_are_used(server: str) -> None:
    assert refusals(text({"server": server})) == ()


@pytest.mark.parametrize(
    "server",
    [
        "https://",
        "https://under_score.example",
        "https://[half",
        "https://[10.0.0.1]",
        "https://[fe80::1%25eth0]",
        "https://-a.b",
        "https://a..b",
        "https://" + "a" * 64 + ".example",
        "https://" + "a." * 126 + "aa",
        "https://a:0",
        "https://a:65536",
        "https://a:99999999999",
        "https://a:b@c",
        "https://a?b",
        "https://a#b",
        "https://a\\b",
        "https://a b",
        "https://a\nb",
        "https://a/\r\nHost: b",
        "https://\uff41.example",
        "HTTPS://a",
        "ftp://a",
        "just words",
    ],
)
def test_addresses_that_are_not(server: str) -> None:
    (problem,) = refusals(text({"server": server}))
    assert problem.startswith("clusters[0].cluster.server (line ")
    assert "must be https:// with an IP address or DNS name" in problem


@pytest.mark.parametrize(
    ("entry", "user", "expected"),
    [
        ({"insecure-skip-tls-verify": True}, None, "insecure-skip-tls-verify is not allowed"),
        ({"certificate-authority": "/ca.crt"}, None, "is a file: write its content .* as certificate-authority-data"),
        ({"server": ""}, None, "cluster.server is missing"),
        ({"server": "http://a"}, None, "must begin with https://: without TLS"),
        ({"server": "HTTP://a"}, None, "must begin with https://: without TLS"),
        ({"server": 7}, None, "must be a text: put it into quotes"),
        ({"tls-server-name": "a b"}, None, "tls-server-name must be an IP address or DNS name"),
        ({"tls-server-name": "\u212aa.example"}, None, "tls-server-name must be an IP address or DNS name"),
        ({"proxy-url": "socks5://a"}, None, "proxy-url must be http:// or https://"),
        ({"proxy-url": "http://a/path"}, None, "proxy-url must be http:// or https://"),
        ({"proxy-url": "http://a:b@c@d"}, None, "proxy-url must be http:// or https://"),
        ({"disable-compression": "yes"}, None, "disable-compression must be true or false"),
        ({"certificate-authority-data": "!"}, None, "certificate-authority-data is not base64 of PEM text"),
        ({"certificate-authority-data": "/w=="}, None, "certificate-authority-data is not base64 of PEM text"),
        ({"certificate-authority-data": "YQ=="}, None, r"certificate-authority \(inline data\) cannot be used"),
        ({"certificate-authority-data": "w6k="}, None, r"certificate-authority \(inline data\) cannot be used"),
        ({"extensions": {}}, None, "extensions must be a list"),
        (None, {"tokenFile": "/token"}, "tokenFile is a file: write its content into the kubeconfig as token"),
        (None, {"username": "a"}, "username is a login with a password"),
        (None, {"password": "b"}, "password is a login with a password"),
        (None, {"exec": {"command": "aws"}}, "exec runs a program: use the token of a ServiceAccount"),
        (None, {"exec": {}}, "exec runs a program"),
        (None, {"auth-provider": {"name": "gcp"}}, "auth-provider runs an auth provider"),
        (None, {"client-certificate": "/c", "token": "t"}, "client-certificate is a file"),
        (None, {"client-key": "/k", "token": "t"}, "client-key is a file"),
        (
            None,
            {"client-certificate-data": CERTIFICATE},
            "user client-certificate-data and client-key-data go together",
        ),
        (None, {"client-key-data": KEY}, "user client-certificate-data and client-key-data go together"),
        (None, {"client-certificate-data": CERTIFICATE, "client-key-data": "YQ=="}, "client-key .* cannot be used"),
        (
            None,
            {"client-certificate-data": CERTIFICATE, "client-key-data": base64.b64encode(b"a" * 8193).decode()},
            "client-key-data is longer than 8192 characters",
        ),
        (None, {"token": "a\nb"}, "token must be visible ASCII"),
        (None, {"token": "a b"}, "token must be visible ASCII"),
        (None, {"token": "\u00e9"}, "token must be visible ASCII"),
        (None, {"token": "a" * 16385}, "token must be visible ASCII"),
        (None, {"token": 12345}, "token must be a text: put it into quotes"),
        (None, {"as": "ann\r\nImpersonate-Group: system:masters"}, "as must be printable"),
        (None, {"as": "a", "as-groups": ["g\n"]}, "as-groups must be a list of texts of printable"),
        (None, {"as": "a", "as-groups": "g"}, "as-groups must be a list"),
        (None, {"as": "a", "as-user-extra": {"k\n": ["v"]}}, "as-user-extra must have a list"),
        (None, {"as": "a", "as-user-extra": {"k": "v"}}, "as-user-extra must have a list"),
        (None, {"as": "a", "as-user-extra": ["v"]}, "as-user-extra must be a mapping"),
        (None, {"as-uid": "7"}, "user as-groups, as-uid and as-user-extra need `as`"),
        (None, {"token": "t", "tokne": "u"}, r"^a key of users\[0\].user that is not known"),
    ],
)
def test_what_is_refused_is_named_with_its_place(entry: Tree | None, user: Tree | None, expected: str) -> None:
    (problem,) = refusals(text(entry, user))
    assert re.search(expected, without_lines(problem)) is not None, problem


def without_lines(problem: str) -> str:
    return re.sub(r"^line \d+: | \(line \d+\)", "", problem)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"apiVersion": "v2"}, "apiVersion must be v1"),
        ({"kind": "List"}, "kind must be Config"),
        ({"current-context": ""}, "current-context is missing: name the context to use"),
        ({"current-context": "x"}, "current-context names none of the contexts"),
        ({"current-context": 1}, "current-context must be a text: put it into quotes"),
        ({"contexts": {}}, "contexts must be a list"),
        ({"contexts": ["a"]}, "contexts[0] must be a mapping of keys to values"),
        ({"preferences": {"a": 1}}, "a key of preferences that is not known: remove it"),
        ({"items": []}, "a key that is not known: remove it"),
    ],
)
def test_the_top_is_judged_too(others: Tree, expected: str) -> None:
    assert without_lines(refusals(text(**others))[0]) == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"cluster": "x", "user": "multikueue"}, "contexts[0].context.cluster names none of the clusters"),
        ({"cluster": "worker", "user": "x"}, "contexts[0].context.user names none of the users"),
        ({"cluster": "worker", "namespace": "A"}, "contexts[0].context.namespace must be a name of a namespace"),
        ({"cluster": "worker", "x": "y"}, "a key of contexts[0].context that is not known: remove it"),
        ({"user": "multikueue"}, "contexts[0].context.cluster names none of the clusters"),
    ],
)
def test_contexts_are_judged(context: Tree, expected: str) -> None:
    (problem,) = refusals(text(contexts=[{"name": "worker", "context": context}]))
    assert without_lines(problem) == expected


def test_lines_are_those_of_the_text() -> None:
    content = (
        "current-context: w\n"
        "contexts: [{name: w, context: {cluster: w, user: u}}]\n"
        "clusters:\n"
        "- name: w\n"
        "  cluster:\n"
        "    server: http://w\n"
        "users:\n"
        "- name: u\n"
        "  user:\n"
        "    tokne: x\n"
        "    exec: {}\n"
    )
    assert [re.findall(r"line (\d+)", problem) for problem in refusals(content)] == [["6"], ["10"], ["11"]]


def test_everything_wrong_is_said_at_once() -> None:
    bad = text({"insecure-skip-tls-verify": True, "certificate-authority": "/c"}, {"tokenFile": "/t", "exec": {"a": 1}})
    assert len(refusals(bad)) == 4


def test_more_than_a_person_reads_is_counted() -> None:
    problems = refusals(text(users=[{"name": f"u{number}", "user": {"exec": {}}} for number in range(50)]))
    assert len(problems) == 21
    assert problems[-1] == "and 31 more problems"  # one is that the context's user is none of them


@pytest.mark.parametrize("part", ["users", "clusters", "contexts"])
@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_a_name_stands_once(part: str, dump: Callable[[Tree], str]) -> None:
    content = json.loads(json.dumps(tree(SERVER)))
    content[part].append(json.loads(json.dumps(content[part][0])))
    (problem,) = refusals(dump(content))
    said = f"{part}[1].name is the one of {part}[0]: give each a name of its own, or remove one"
    assert without_lines(problem) == said


def test_entries_that_are_not_current_are_judged_as_well() -> None:
    users = [
        {"name": "multikueue", "user": {"token": "t"}},
        {"name": "me", "user": {"exec": {"command": "x", "apiVersion": API_VERSIONS[0]}}},
    ]
    (problem,) = refusals(text(users=users))
    assert problem.startswith("users[1].user.exec")
    clusters = [*tree(SERVER)["clusters"], {"name": "far", "cluster": {"server": "http://far"}}]
    (problem,) = refusals(text(clusters=clusters))
    assert problem.startswith("clusters[1].cluster.server")


@pytest.mark.parametrize(
    ("content", "expected"),
    [("a: [", "not YAML"), ("", "empty"), ("- a", "empty"), ("a", "empty"), ("#" * 300000, "longer than")],
)
def test_what_is_no_kubeconfig_is_said_in_one_line(content: str, expected: str) -> None:
    (problem,) = refusals(content)
    assert expected in problem
    assert "\n" not in problem


def token(**claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJh.{middle}.c2ln"


def test_a_service_account_token_says_when_it_ends() -> None:
    end = datetime(2026, 9, 30, 12, tzinfo=UTC)
    assert judge(text(user={"token": token(exp=end.timestamp())}), {}).token_end == end


@pytest.mark.parametrize(
    "given_token",
    [
        "opaque",
        "a.b.c",
        token(),
        token(exp="soon"),
        token(exp=1e300),
        token(exp=[]),
        "a." + base64.urlsafe_b64encode(b'{"exp":' + b"[" * 9000).decode().rstrip("=") + ".c",
        "",
    ],
)
def test_a_token_that_does_not_say_is_no_error(given_token: str) -> None:
    assert token_end(given_token) is None
    assert judge(text(user={"token": given_token}), {}).token_end is None


WORDS = st.sampled_from(
    [
        *("clusters", "users", "contexts", "name", "cluster", "user", "context", "server", "token", "current-context"),
        *("extensions", "extension", "preferences", "as-user-extra", "as-groups", "exec", "kind", "namespace"),
    ]
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8) | st.integers() | WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_no_form_of_yaml_breaks_the_judge(made: Any) -> None:
    judged = judge(yaml.safe_dump(made), {})
    assert (judged.config is None) == bool(judged.refusals)


@given(st.text() | st.text(alphabet="{}[]:,-?&*!|>'\"%@`#\n\t ab<"))
def test_no_text_at_all_breaks_the_judge(content: str) -> None:
    assert judge(content, {}).refusals
