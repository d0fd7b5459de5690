"""What each initializer of the SDK writes is what the program in the step reads: real bytes from real servers."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.initializers import servers
from trainplane.client.errors import InvalidError, PlainSecretError
from trainplane.client.submission.sources import write_initializer
from trainplane.client.types.initializers import (
    AzureInitializer,
    FileInitializer,
    GCSInitializer,
    HTTPInitializer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    PVCInitializer,
    S3DatasetInitializer,
    S3ModelInitializer,
)
from trainplane.client.types.secrets import SecretRef
from trainplane.initializers.console import Console
from trainplane.initializers.program import run
from trainplane.initializers.request import read_request
from trainplane.initializers.schemes import SCHEMES, open_source
from trainplane.initializers.secrets import Secrets
from trainplane.initializers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainplane.client.types.initializers import BaseInitializer

KEY = SecretRef("store", "key")
VALUE = "what the Secret has"
BUCKETS = (
    S3DatasetInitializer("s3://b/p", ["*.bin"], "https://store", "id", KEY, "eu", allow_patterns=["*.parquet"]),
    S3ModelInitializer("s3://b/p", anonymous=True, session_token=KEY),
    GCSInitializer("gs://b/p", service_account_key=KEY, endpoint="https://store"),
    GCSInitializer("gs://b/p", anonymous=True),
    AzureInitializer("az://c/p", "account", ["*.bin"], account_key=KEY),
    AzureInitializer("az://c/p", "account", sas_token=KEY, endpoint="https://store"),
)
NAMES = list(
    zip(
        BUCKETS,
        [
            "ALLOW_PATTERNS IGNORE_PATTERNS ENDPOINT ACCESS_KEY_ID SECRET_ACCESS_KEY REGION",
            "ANONYMOUS IGNORE_PATTERNS SESSION_TOKEN",
            "GOOGLE_SERVICE_ACCOUNT_KEY ENDPOINT",
            "ANONYMOUS",
            "AZURE_STORAGE_ACCOUNT_NAME IGNORE_PATTERNS AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCOUNT_NAME AZURE_STORAGE_SAS_TOKEN ENDPOINT",
        ],
        strict=True,
    )
)
ALL = (
    HuggingFaceDatasetInitializer("owner/name", revision="v1", endpoint="https://hub"),
    HuggingFaceModelInitializer("hf://owner/name", access_token=KEY, allow_patterns=["*.json"]),
    *BUCKETS,
    HTTPInitializer("https://host/file.parquet", access_token=KEY),
    PVCInitializer("pvc://claim/sets", ["*.bin"], ["*.parquet"]),
    FileInitializer("file:///data/sets"),
)


@pytest.fixture(autouse=True)
def _logging_again() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def written(source: Any) -> tuple[str, dict[str, Any]]:
    part = "model" if "Model" in type(source).__name__ else "dataset"
    return part, write_initializer(Initializer(**{part: source}))[part]


def environment(source: BaseInitializer, secret: str = VALUE) -> tuple[str, dict[str, str]]:
    """Return the step and its variables, as the kubelet makes them."""
    part, tree = written(source)
    env = {entry["name"]: entry.get("value", secret) for entry in tree.get("env", ())}
    return part, {"STORAGE_URI": tree["storageUri"], **env}


def test_each_scheme_has_a_type() -> None:
    schemes = {environment(source)[1]["STORAGE_URI"].partition(":")[0] for source in ALL}
    assert schemes == set(SCHEMES) - {"http"}


@pytest.mark.parametrize("source", [one for one in ALL if one not in BUCKETS], ids=lambda one: type(one).__name__)
def test_the_program_understands_it(source: BaseInitializer) -> None:
    request = read_request(*environment(source))
    assert isinstance(open_source(request), Source)
    for given, read in (("allow_patterns", request.allow), ("ignore_patterns", request.ignore)):
        assert read[:1] == tuple(getattr(source, given, None) or read)[:1]


@pytest.mark.parametrize(("source", "names"), NAMES, ids=lambda one: getattr(one, "storage_uri", "")[:5])
def test_a_bucket_is_told_by_the_programs_variables(source: BaseInitializer, names: str) -> None:
    _, tree = written(source)
    assert {entry["name"] for entry in tree["env"]} == set(names.split())
    for entry in tree["env"]:
        if "valueFrom" in entry:
            assert entry["valueFrom"] == {"secretKeyRef": {"name": "store", "key": "key"}}


def test_bytes_come_from_a_web_server_with_a_token(tmp_path: Path) -> None:
    with servers.serving(servers.Site({"file": b"bytes"})) as site:
        env = environment(HTTPInitializer(f"{site.url}/file"))[1]
        assert run("model", env, tmp_path, Console(Secrets(env), io.StringIO(), io.StringIO(), tmp_path / "log")) == 0
    assert (tmp_path / "file").read_bytes() == b"bytes"


def test_bytes_come_from_a_claim(tmp_path: Path) -> None:
    (tmp_path / "claim/sets").mkdir(parents=True)
    for name in ("a.parquet", "b.bin", "c.txt"):
        (tmp_path / "claim/sets" / name).write_text(name)
    part, env = environment(PVCInitializer("pvc://claim/sets", ["*.bin"], ["*.parquet", "*.bin"]))
    env["PVC_ROOT"] = str(tmp_path)
    target = tmp_path / "workspace"
    assert run(part, env, target, Console(Secrets(env), io.StringIO(), io.StringIO(), tmp_path / "log")) == 0
    assert [path.name for path in target.iterdir() if path.is_file()] == ["a.parquet"]


@pytest.mark.parametrize(
    ("kind", "uri", "more"),
    [
        (GCSInitializer, "s3://b", ()),
        (AzureInitializer, "https://b", ("account",)),
        (HTTPInitializer, "ftp://b", ()),
        (PVCInitializer, "claim/path", ()),
        (FileInitializer, "file://host/path", ()),
    ],
)
def test_another_scheme_is_refused(kind: Any, uri: str, more: tuple[str, ...]) -> None:
    with pytest.raises(InvalidError, match="storage_uri must start with"):
        kind(uri, *more)


@pytest.mark.parametrize(
    ("kind", "uri", "given"),
    [
        (S3DatasetInitializer, "s3://b", {"session_token": "x"}),
        (GCSInitializer, "gs://b", {"service_account_key": "{}"}),
        (AzureInitializer, "az://b", {"account_name": "a", "account_key": "x"}),
        (AzureInitializer, "az://b", {"account_name": "a", "sas_token": "x"}),
        (HTTPInitializer, "https://b", {"access_token": "x"}),
    ],
)
def test_a_secret_in_the_open_is_refused(kind: Any, uri: str, given: dict[str, str]) -> None:
    with pytest.raises(PlainSecretError, match="is given in the open"):
        kind(uri, **given)
