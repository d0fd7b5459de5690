from __future__ import annotations

import base64
import os
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from trainplane.kube.credentials import Credential, TokenFile, bearer
from trainplane.kube.errors import ConfigError
from trainplane.kube.execplugin import API_VERSIONS, ExecCredentials
from trainplane.kube.loading import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.kube.config import Config

Tree = dict[str, Any]


def kubeconfig(cluster: Tree | None = None, user: Tree | None = None, context: Tree | None = None, **top: Any) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"} | (context or {})}],
    } | top


def write(path: Path, tree: Tree) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(tree))
    return path


def load(tmp_path: Path, tree: Tree, *, environ: dict[str, str] | None = None, **arguments: Any) -> Config:
    return load_config(write(tmp_path / "config", tree), environ=environ or {}, **arguments)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_least_there_can_be(tmp_path: Path) -> None:
    config = load(tmp_path, kubeconfig())
    assert (config.server, config.namespace, config.context) == ("https://api:6443", "default", "main")
    assert (config.proxy, config.headers, config.compression) == (None, [], True)
    assert not config.tls.insecure
    assert config.tls.ca is config.tls.certificate is config.tls.key is config.tls.server_name is None


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    tree = kubeconfig(users=None, contexts=[{"name": "main", "context": {"cluster": "c"}}])
    assert load(tmp_path, tree).server == "https://api:6443"


def test_json_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        '{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"y","namespace":"team"}}],'
        '"clusters":[{"name":"y","cluster":{"server":"http://localhost:8001/prefix"}}]}'
    )
    config = load_config(file, environ={})
    assert (config.server, config.namespace) == ("http://localhost:8001/prefix", "team")


class TestCluster:
    def test_all_fields(self, tmp_path: Path) -> None:
        cluster = {
            "certificate-authority-data": encoded("CA"),
            "tls-server-name": "inner",
            "proxy-url": "http://proxy:3128",
            "disable-compression": True,
        }
        config = load(tmp_path, kubeconfig(cluster, context={"namespace": "team"}))
        assert (config.tls.ca, config.tls.server_name) == ("CA", "inner")
        assert (config.proxy, config.compression, config.namespace) == ("http://proxy:3128", False, "team")

    def test_files_are_relative_to_the_kubeconfig_and_data_wins_over_files(self, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_text("CA")
        config = load(tmp_path, kubeconfig({"certificate-authority": "ca.crt"}))
        assert config.tls.ca == tmp_path / "ca.crt"
        both = {"certificate-authority": "absent.crt", "certificate-authority-data": encoded("DATA")}
        assert load(tmp_path, kubeconfig(both)).tls.ca == "DATA"

    def test_skipping_verification_is_for_the_cluster_that_says_so_alone(self, tmp_path: Path) -> None:
        tree = kubeconfig({"insecure-skip-tls-verify": True})
        tree["clusters"].append({"name": "d", "cluster": {"server": "https://other"}})
        tree["contexts"].append({"name": "other", "context": {"cluster": "d", "user": "u"}})
        assert load(tmp_path, tree).tls.insecure
        assert not load(tmp_path, tree, context="other").tls.insecure

    def test_the_environments_proxy_stands_back_behind_the_entrys(self, tmp_path: Path) -> None:
        environ = {"HTTPS_PROXY": "http://env:1"}
        assert load(tmp_path, kubeconfig(), environ=environ).proxy == "http://env:1"
        assert load(tmp_path, kubeconfig({"proxy-url": "http://entry:1"}), environ=environ).proxy == "http://entry:1"


class TestUser:
    async def test_token(self, tmp_path: Path) -> None:
        assert await load(tmp_path, kubeconfig(user={"token": "t"})).credentials.current() == bearer("t")

    async def test_a_token_file_wins_over_a_token_and_is_relative_to_the_kubeconfig(self, tmp_path: Path) -> None:
        (tmp_path / "tok").write_text("from file\n")
        credentials = load(tmp_path, kubeconfig(user={"token": "t", "tokenFile": "tok"})).credentials
        assert isinstance(credentials, TokenFile)
        assert await credentials.current() == bearer("from file")

    async def test_basic(self, tmp_path: Path) -> None:
        credentials = load(tmp_path, kubeconfig(user={"username": "ann", "password": "x"})).credentials
        assert await credentials.current() == Credential("Basic YW5uOng=")

    def test_certificates_from_files_and_from_data(self, tmp_path: Path) -> None:
        (tmp_path / "c.crt").write_text("C")
        (tmp_path / "c.key").write_text("K")
        tls = load(tmp_path, kubeconfig(user={"client-certificate": "c.crt", "client-key": "c.key"})).tls
        assert (tls.certificate, tls.key) == (tmp_path / "c.crt", tmp_path / "c.key")
        data = {"client-certificate-data": encoded("C"), "client-key-data": encoded("K")}
        tls = load(tmp_path, kubeconfig(user=data)).tls
        assert (tls.certificate, tls.key) == ("C", "K")

    def test_impersonation(self, tmp_path: Path) -> None:
        user = {"as": "ann", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"acme/project": ["x", "y"]}}
        assert load(tmp_path, kubeconfig(user=user)).headers == [
            ("Impersonate-User", "ann"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-acme%2Fproject", "x"),
            ("Impersonate-Extra-acme%2Fproject", "y"),
        ]

    def test_secrets_do_not_show_in_a_repr(self, tmp_path: Path) -> None:
        user = {"token": "very-secret", "client-certificate-data": encoded("C"), "client-key-data": encoded("HIDDEN")}
        shown = repr(load(tmp_path, kubeconfig(user=user)))
        assert "very-secret" not in shown
        assert "HIDDEN" not in shown


class TestExec:
    def plugin(self, tmp_path: Path, entry: Tree, cluster: Tree | None = None) -> Any:
        user = {"exec": {"apiVersion": API_VERSIONS[0], "interactiveMode": "Never", "command": "login"} | entry}
        credentials = load(tmp_path, kubeconfig(cluster, user)).credentials
        assert isinstance(credentials, ExecCredentials)
        return credentials._plugin

    def test_all_fields(self, tmp_path: Path) -> None:
        entry = {
            "args": ["token", "--x"],
            "env": [{"name": "A", "value": "1"}, {"name": "B"}],
            "installHint": "get it",
            "interactiveMode": "Always",
        }
        plugin = self.plugin(tmp_path, entry)
        assert (plugin.command, plugin.args, plugin.env) == ("login", ("token", "--x"), {"A": "1", "B": ""})
        assert (plugin.install_hint, plugin.interactive_mode, plugin.cluster) == ("get it", "Always", None)

    @pytest.mark.parametrize("empty", [{"args": None, "env": None}, {}])
    def test_empty_lists_as_kubectl_writes_them(self, tmp_path: Path, empty: Tree) -> None:
        plugin = self.plugin(tmp_path, empty)
        assert (plugin.args, plugin.env) == ((), {})

    def test_a_relative_command_is_relative_to_the_kubeconfig_and_a_bare_one_is_not(self, tmp_path: Path) -> None:
        assert self.plugin(tmp_path, {"command": "./bin/login"}).command == str(tmp_path / "bin/login")
        assert self.plugin(tmp_path, {"command": "/opt/login"}).command == "/opt/login"
        assert self.plugin(tmp_path, {"command": "login"}).command == "login"

    def test_v1beta1_is_interactive_where_it_can_be(self, tmp_path: Path) -> None:
        plugin = self.plugin(tmp_path, {"apiVersion": API_VERSIONS[1], "interactiveMode": None})
        assert plugin.interactive_mode == "IfAvailable"

    def test_the_cluster_is_told_where_asked(self, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_text("CA")
        cluster = {
            "certificate-authority": "ca.crt",
            "tls-server-name": "inner",
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
            ],
        }
        assert self.plugin(tmp_path, {"provideClusterInfo": True}, cluster).cluster == {
            "server": "https://api:6443",
            "tls-server-name": "inner",
            "certificate-authority-data": encoded("CA"),
            "config": {"audience": "x"},
        }


class TestMerging:
    def test_the_first_file_that_names_something_wins_whole(self, tmp_path: Path) -> None:
        first = write(
            tmp_path / "a" / "config",
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
                "users": [{"name": "u", "user": {"tokenFile": "tok"}}],
            },
        )
        second = write(
            tmp_path / "b" / "config",
            kubeconfig({"server": "https://second", "tls-server-name": "x"}, {"token": "second"}),
        )
        third = write(tmp_path / "c" / "config", kubeconfig() | {"current-context": "other"})
        listed = os.pathsep.join([str(first), str(tmp_path / "absent"), "", str(second), str(third)])
        config = load_config(environ={"KUBECONFIG": listed})
        assert (config.server, config.context) == ("https://first", "main")
        assert config.tls.server_name is None, "no field of the second file's cluster leaks into the first's"
        assert isinstance(config.credentials, TokenFile)
        assert config.credentials._path == tmp_path / "a" / "tok"

    def test_a_context_of_any_file_can_be_chosen(self, tmp_path: Path) -> None:
        first = write(tmp_path / "a", kubeconfig())
        other = {
            "clusters": [{"name": "d", "cluster": {"server": "https://other"}}],
            "contexts": [{"name": "far", "context": {"cluster": "d", "user": "u", "namespace": "n"}}],
        }
        second = write(tmp_path / "b", other)
        config = load_config(environ={"KUBECONFIG": f"{first}{os.pathsep}{second}"}, context="far")
        assert (config.server, config.namespace, config.context) == ("https://other", "n", "far")


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ((kubeconfig() | {"current-context": ""}), "sets no current-context.*it has: main"),
        ((kubeconfig() | {"current-context": "gone"}), "current-context names context 'gone'.*it has: main"),
        (kubeconfig(context={"cluster": "x"}), "context 'main' names cluster 'x'.*it has: c"),
        (kubeconfig(context={"user": "x"}), "context 'main' names user 'x'.*it has: u"),
        (kubeconfig({"server": "api:6443"}), "server must be a URL"),
        (kubeconfig({"server": ""}), "server must be a URL"),
        (kubeconfig({"proxy-url": "socks5://p"}), "proxy-url: a proxy is reached by http:// or https://"),
        (kubeconfig({"server": "https://api:99999"}), "server must be a URL"),
        (kubeconfig({"server": "https://[api"}), "server must be a URL"),
        (kubeconfig(users=[{"name": "u"}, {"name": "v"}, {"name": "u"}]), r"users\[2\] has the name of users\[0\]"),
        (
            kubeconfig(clusters=[{"name": "c", "cluster": {"server": "https://a"}}] * 2),
            r"clusters\[1\] has the name of clusters\[0\]: give each a name of its own",
        ),
        (kubeconfig(contexts=[{"name": "main", "context": {"cluster": "c"}}] * 2), r"contexts\[1\] has the name of"),
        (kubeconfig({"certificate-authority": "absent"}), "certificate-authority is .*absent, which does not exist"),
        (kubeconfig({"certificate-authority-data": "!"}), "certificate-authority-data is not base64"),
        (
            kubeconfig({"certificate-authority-data": encoded("x"), "insecure-skip-tls-verify": True}),
            "both insecure-skip-tls-verify and a certificate-authority",
        ),
        (kubeconfig(user={"client-certificate-data": encoded("x")}), "client-key is missing"),
        (kubeconfig(user={"client-key-data": encoded("x")}), "client-certificate is missing"),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "auth-provider is gone"),
        (kubeconfig(user={"as-groups": ["a"]}), "need `as`"),
        (
            kubeconfig(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "v1alpha1",
        ),
        (kubeconfig(user={"exec": {"command": "x", "apiVersion": API_VERSIONS[0]}}), "interactiveMode is missing"),
        (kubeconfig(user={"exec": {"apiVersion": API_VERSIONS[0]}}), r"command.*users\[0\]"),
        (kubeconfig({"server": 7}), r"Expected `str`, got `int` - at `\$.clusters\[0\].cluster.server`"),
        (kubeconfig(clusters="none"), r"at `\$.clusters`"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, tree: Tree, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load(tmp_path, tree)
    assert str(tmp_path / "config") in str(caught.value)
    assert caught.value.whose == "user"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the kubeconfig .*absent"):
        load_config(tmp_path / "absent", environ={})
    broken = tmp_path / "broken"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="broken is not YAML"):
        load_config(broken, environ={})
    broken.write_text("- a")
    with pytest.raises(ConfigError, match="broken is not well-formed"):
        load_config(broken, environ={})


@pytest.mark.parametrize(
    "content",
    [
        "users:\n- name: u\n  user:\n    token: hunter2 expires: never\n",
        "users: [{name: u, user: {token: *hunter2}}]",
        "users: [{name: u, user: {token: !hunter2 x}}]",
        'users: [{name: u, user: {token: "hunter2\\q"}}]',
        "users: [{name: u, user: {token: hunter2\x01}}]",
    ],
)
def test_a_line_that_cannot_be_read_is_named_by_its_number_for_the_token_may_be_in_it(
    tmp_path: Path, content: str
) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(ConfigError, match="is not YAML") as caught:
        load_config(file, environ={})
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert "hunter2" not in shown


def test_bytes_that_are_no_text_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"token: hunter2 \xff")
    with pytest.raises(ConfigError, match="cannot read the kubeconfig") as caught:
        load_config(file, environ={})
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_what_urls_hide_is_not_shown(tmp_path: Path) -> None:
    cluster = {"server": "https://ann:hunter2@api:6443/hunter2", "proxy-url": "http://ann:hunter2@proxy:1"}
    config = load(tmp_path, kubeconfig(cluster))
    assert "hunter2" not in repr(config)
    assert config.address == "https://api:6443"


def test_an_unknown_context_of_the_caller_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the caller names context 'x'.*it has: main"):
        load(tmp_path, kubeconfig(), context="x")


def test_a_config_can_be_changed_for_one_caller(tmp_path: Path) -> None:
    config = load(tmp_path, kubeconfig())
    assert replace(config, namespace="other").namespace == "other"
    assert config.namespace == "default"


class TestFinding:
    def account(self, tmp_path: Path, **files: str) -> Path:
        for name, content in ({"token": "pod-token", "namespace": "team\n", "ca.crt": "CA"} | files).items():
            (tmp_path / name).write_text(content)
        return tmp_path

    async def test_in_a_pod(self, tmp_path: Path) -> None:
        environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
        config = load_config(environ=environ, service_account=self.account(tmp_path))
        assert (config.server, config.namespace) == ("https://10.0.0.1:443", "team")
        assert config.tls.ca == tmp_path / "ca.crt"
        assert await config.credentials.current() == bearer("pod-token")
        assert not config.compression

    def test_in_a_pod_of_an_ipv6_cluster_without_namespace_file(self, tmp_path: Path) -> None:
        account = self.account(tmp_path)
        (account / "namespace").unlink()
        environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
        config = load_config(environ=environ, service_account=account)
        assert (config.server, config.namespace) == ("https://[fd00::1]:443", "default")

    def test_a_kubeconfig_goes_before_the_pods_account(self, tmp_path: Path) -> None:
        write(tmp_path / ".kube" / "config", kubeconfig())
        environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
        assert load_config(environ=environ, service_account=self.account(tmp_path)).context == "main"

    def test_a_pod_without_a_token_is_told_how_to_get_one(self, tmp_path: Path) -> None:
        environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
        with pytest.raises(ConfigError, match="automountServiceAccountToken"):
            load_config(environ=environ, service_account=tmp_path)

    def test_nothing_to_be_found_names_what_was_looked_at(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=rf"no kubeconfig at {tmp_path}/\.kube/config, and this is no pod"):
            load_config(environ={"HOME": str(tmp_path)})
        with pytest.raises(ConfigError, match="context 'x' is asked for, but there is no kubeconfig"):
            load_config(environ={"HOME": str(tmp_path)}, context="x")
        with pytest.raises(ConfigError, match="not both set"):
            load_config(environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "a"}, service_account=tmp_path)
