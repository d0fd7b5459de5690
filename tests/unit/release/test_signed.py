"""A release is what its key signed, byte for byte and file for file; anything else is refused and named."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from release import checksums, provenance, signing
from release.errors import ReleaseError, UntrustedError
from release.source import Source
from release.verify import PUBLIC_KEY, SIGNATURE, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = Source("c" * 40, 1_700_000_000, "1.2.3", "v1.2.3")


@pytest.fixture
def released(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in ("a.whl", "a.tar.gz"):
        (folder / name).write_bytes(name.encode() * 100)
    sign(folder, signing.make_key(tmp_path / "key"))
    return folder


def sign(folder: Path, key: Any) -> None:
    sums = checksums.of(path for path in folder.iterdir() if path.name.startswith("a."))
    content = checksums.text(sums).encode()
    (folder / checksums.NAME).write_bytes(content)
    (folder / SIGNATURE).write_text(signing.sign(content, key) + "\n")
    (folder / PUBLIC_KEY).write_bytes(signing.public_pem(key))
    statement = provenance.statement(sums, SOURCE, {"requirements/base.txt": "0" * 64}, 1.0, 2.0)
    (folder / provenance.NAME).write_text(signing.seal(statement, key))


def pem(folder: Path) -> bytes:
    return (folder / PUBLIC_KEY).read_bytes()


def test_what_was_signed_is_believed(released: Path) -> None:
    assert list(verify(released, pem(released))) == ["a.tar.gz", "a.whl"]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: flip(folder / "a.whl"), "a.whl: has been changed"),
        (lambda folder: (folder / "a.whl").unlink(), "a.whl: is missing"),
        (lambda folder: link(folder / "a.whl"), "a.whl: is no plain file"),
        (lambda folder: (folder / "b.whl").write_text("b"), "'b.whl': is not of this release"),
        (lambda folder: flip(folder / checksums.NAME), "SHA256SUMS: is not signed by key"),
        (lambda folder: flip(folder / SIGNATURE), "SHA256SUMS: is not signed by key"),
        (lambda folder: (folder / SIGNATURE).write_bytes(b"\xff{}"), "SHA256SUMS: is not signed by key"),
        (lambda folder: (folder / SIGNATURE).unlink(), "SHA256SUMS.sig: cannot be read"),
        (lambda folder: (folder / provenance.NAME).write_text("[]"), "is no DSSE envelope"),
        (lambda folder: (folder / provenance.NAME).write_text("[" * 100_000), "is no DSSE envelope"),
        (lambda folder: (folder / provenance.NAME).write_bytes(b" " * (5 << 20)), "is larger than"),
    ],
)
def test_a_change_is_refused_and_named(released: Path, change: Callable[[Path], object], said: str) -> None:
    change(released)
    with pytest.raises(UntrustedError, match=said):
        verify(released, pem(released))


def test_another_key_is_refused(released: Path, tmp_path: Path) -> None:
    other = signing.make_key(tmp_path / "other")
    with pytest.raises(UntrustedError, match="not signed by key"):
        verify(released, signing.public_pem(other))


def test_a_statement_of_another_release_is_refused(released: Path, tmp_path: Path) -> None:
    before = (released / provenance.NAME).read_text()
    (released / "a.whl").write_bytes(b"newer")
    sign(released, signing.private_key(tmp_path / "key"))
    (released / provenance.NAME).write_text(before)
    with pytest.raises(UntrustedError, match="speaks of other files"):
        verify(released, pem(released))


def test_the_payload_of_another_type_is_refused(released: Path, tmp_path: Path) -> None:
    key = signing.private_key(tmp_path / "key")
    envelope = signing.seal(b"{}", key, "text/plain").encode()
    assert signing.unseal(envelope, key.public_key(), "text/plain") == b"{}"
    with pytest.raises(UntrustedError, match="its payload is no application/vnd"):
        signing.unseal(envelope, key.public_key())
    relabelled = json.loads(envelope) | {"payloadType": signing.STATEMENT}
    with pytest.raises(UntrustedError, match="is not signed by"):
        signing.unseal(json.dumps(relabelled).encode(), key.public_key())


def test_what_dsse_signs_is_what_its_specification_says() -> None:
    kind, body = "http://example.com/HelloWorld", b"hello world"
    assert signing.pre_authentication(kind, body) == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_openssl_verifies_the_signature(released: Path, tmp_path: Path) -> None:
    (tmp_path / "der").write_bytes(base64.b64decode((released / SIGNATURE).read_text()))
    words = ["openssl", "dgst", "-sha256", "-verify", str(released / PUBLIC_KEY), "-signature", str(tmp_path / "der")]
    done = subprocess.run([*words, str(released / checksums.NAME)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("Verified OK\n", 0)


def test_sha256sum_reads_the_sums(released: Path) -> None:
    words = ["sha256sum", "--check", "--strict", checksums.NAME]
    done = subprocess.run(words, cwd=released, capture_output=True, text=True, check=True)
    assert done.stdout == "a.tar.gz: OK\na.whl: OK\n"


@pytest.mark.parametrize(
    "line",
    [
        f"{'0' * 64}  ../a", f"{'0' * 64}  /a", f"{'0' * 64}  .a", f"{'0' * 64}  a b", f"{'0' * 64} *a", "0  a",
        f"{'0' * 64}  -a", f"{'0' * 64}  a\033[m", f"{'A' * 64}  a",
    ],
)  # fmt: skip
def test_sums_of_anything_but_plain_names_are_refused(line: str) -> None:
    with pytest.raises(UntrustedError, match="SHA256SUMS:1: is no digest and plain name"):
        checksums.parse(line + "\n")


def test_sums_name_each_file_once_and_at_least_one() -> None:
    line = f"{'0' * 64}  a\n"
    with pytest.raises(UntrustedError, match="SHA256SUMS:2"):
        checksums.parse(line * 2)
    with pytest.raises(UntrustedError, match="names no file"):
        checksums.parse("")


def test_the_statement_says_what_was_made_of_what() -> None:
    tree = json.loads(provenance.statement({"a.whl": "1" * 64}, SOURCE, {"requirements/base.txt": "2" * 64}, 1.0, 2.5))
    definition, details = tree["predicate"]["buildDefinition"], tree["predicate"]["runDetails"]
    assert tree["subject"] == [{"name": "a.whl", "digest": {"sha256": "1" * 64}}]
    assert definition["externalParameters"] == {"version": "1.2.3", "tag": "v1.2.3"}
    assert definition["resolvedDependencies"] == [
        {"name": "trainplane", "digest": {"gitCommit": "c" * 40}},
        {"name": "requirements/base.txt", "digest": {"sha256": "2" * 64}},
    ]
    assert details["metadata"] == {"startedOn": "1970-01-01T00:00:01Z", "finishedOn": "1970-01-01T00:00:02Z"}


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"subject": 1}', b"\xff"])
def test_what_is_no_statement_is_refused(payload: bytes) -> None:
    with pytest.raises(UntrustedError, match="is no in-toto statement"):
        provenance.subjects(payload)


def test_a_statement_of_another_build_or_with_a_file_twice_is_refused() -> None:
    tree = json.loads(provenance.statement({"a.whl": "1" * 64}, SOURCE, {}, 1.0, 2.0))
    for changed in (tree | {"predicateType": "https://example.com"}, tree | {"subject": tree["subject"] * 2}):
        with pytest.raises(UntrustedError, match="is no statement of `make release`"):
            provenance.subjects(json.dumps(changed).encode())


def test_a_key_is_its_owner_s_alone_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    key = signing.make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert signing.public_pem(signing.private_key(path)) == signing.public_pem(key)
    with pytest.raises(FileExistsError):
        signing.make_key(path)


@pytest.mark.parametrize("content", [b"", b"secret words", None])
def test_what_is_no_key_is_refused_without_being_quoted(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReleaseError, match="is no readable PEM key on P-256") as caught:
        signing.private_key(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(UntrustedError, match="is no PEM key on P-256"):
        signing.public_key(content or b"")
