from __future__ import annotations

import pytest

from trainplane.kube.errors import ConfigError
from trainplane.kube.proxy import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api.example.com", {}, None),
        ("https://api.example.com", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example.com", {"https_proxy": PROXY}, PROXY),
        ("https://api.example.com", {"HTTP_PROXY": PROXY}, None),
        ("http://api.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://api.example.com", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_which_proxy(server: str, environ: dict[str, str], expected: str | None) -> None:
    assert proxy_for(server, environ) == expected


@pytest.mark.parametrize(
    ("server", "exceptions", "is_direct"),
    [
        ("https://api.example.com", "*", True),
        ("https://api.example.com", "example.com", True),
        ("https://api.example.com", ".example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://example.com", "example.com", True),
        ("https://notexample.com", "example.com", False),
        ("https://api.example.com", " other.org , API.example.com ", True),
        ("https://api.example.com:6443", "api.example.com:6443", True),
        ("https://api.example.com:6443", "api.example.com:443", False),
        ("https://api.example.com", "api.example.com:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://api.example.com", "10.0.0.0/8", False),
        ("https://api.example.com", "", False),
        ("https://api.example.com", ",", False),
    ],
)
def test_exceptions(server: str, exceptions: str, *, is_direct: bool) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        found = proxy_for(server, {"HTTPS_PROXY": PROXY, variable: exceptions})
        assert (found is None) == is_direct


def test_a_scheme_we_cannot_speak_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY of the environment: a proxy is reached by http") as caught:
        proxy_for("https://api.example.com", {"HTTPS_PROXY": "socks5://ann:hunter2@p:1"})
    assert "hunter2" not in str(caught.value)
