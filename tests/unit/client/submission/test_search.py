"""Every kind of secret is found in every coat, and nothing is found where there is none."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import pickle
import sysconfig
import time
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.size import FULL
from tests.unit.client.submission.drawn import drawn, pem, secrets
from trainplane.client.submission import forms, search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = f"hf_{drawn(34)}"
REPOSITORY = Path(__file__).parents[4]


def kinds(data: bytes | str, *, python: bool = False) -> set[str]:
    return {found.what for found in search.search(data.encode() if isinstance(data, str) else data, python=python)}


@pytest.mark.parametrize(("kind", "text"), secrets().items(), ids=secrets().keys())
def test_every_kind_is_found(kind: str, text: str) -> None:
    assert kinds(text)
    assert kinds(f"x = 1\n  {text}\n# end")


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", data)
    return buffer.getvalue()


COATS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "base64": base64.b64encode,
    "base64 in lines": base64.encodebytes,
    "base64 for addresses": base64.urlsafe_b64encode,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
    "zip": zipped,
    "utf-16": lambda data: data.decode().encode("utf-16"),
    "pickle": lambda data: pickle.dumps({"token": data.decode()}),
    "base64 of gzip": lambda data: base64.b64encode(gzip.compress(data)),
    "zip of gzip of base64": lambda data: zipped(gzip.compress(base64.b64encode(data))),
    "a key in json": lambda data: data.replace(b"\n", b"\\n"),
}


@pytest.mark.parametrize("coat", COATS)
@pytest.mark.parametrize("secret", [f"token: {TOKEN}\n", pem("OPENSSH ")], ids=["token", "key"])
def test_no_coat_hides_it(coat: str, secret: str) -> None:
    assert kinds(COATS[coat](secret.encode()))


@pytest.mark.parametrize(
    "source",
    [
        f'TOKEN = "{TOKEN}"',
        f"TOKEN = b'{TOKEN}'",
        f'"""Call it with {TOKEN}."""',
        f"# {TOKEN}",
        f'x = f"Bearer {TOKEN} {{y}}"',
        f"def fit(token={TOKEN!r}): pass",
        f'TOKEN = "{TOKEN[:20]}" "{TOKEN[20:]}"',
        f'TOKEN = "{TOKEN[:20]}" + "{TOKEN[20:]}"',
        f'TOKEN = ("{TOKEN[:20]}"\n  "{TOKEN[20:]}")',
        f'TOKEN = "{TOKEN[:20]}\\\n{TOKEN[20:]}"',
        'TOKEN = "' + "".join(f"\\x{ord(letter):02x}" for letter in TOKEN) + '"',
        "def f():\n    def g():\n        return (1, ('a', '" + TOKEN[:9] + "' '" + TOKEN[9:] + "'))",
        "KEY = [\n" + "".join(f"    {line!r},\n" for line in pem().splitlines()) + "]",
        "KEY = (\n" + "".join(f"    {line!r}\n" for line in pem().splitlines(keepends=True)) + ")",
    ],
)
def test_no_way_of_writing_it_in_python_hides_it(source: str) -> None:
    assert kinds(source, python=True)


def test_a_place_is_told_and_the_value_is_not() -> None:
    (found,) = search.search(f"a: 1\nb: 2\nservice_token: {TOKEN}\n".encode())
    assert (found.line, found.name, found.packed) == (3, "service_token", False)
    assert TOKEN[:12] not in repr(found)
    assert found.value.decode() in TOKEN


@pytest.mark.parametrize(
    "text",
    [
        "hf_hub_download(repo_id='a/b')",
        "hf_" + "x" * 34,
        "hf_your_token_here",
        "sk-learn, sk-toggleable__content sk-estimator-doc-link",
        "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AKIA" + "A" * 16,
        f"commit {drawn(40, '0123456789abcdef')}",
        f"wandb @ git+https://github.com/wandb/wandb@{drawn(40, '0123456789abcdef')}",
        f"revision='{drawn(40, '0123456789abcdef')}'",
        f"sha256:{drawn(64, '0123456789abcdef')}",
        "https://user:password@example.com/ https://{user}:{password}@host https://$USER:$PASS@host",
        "git+ssh://git@github.com/acme/x git@github.com:acme/x.git",
        "password = getpass.getpass()\napi_key = os.environ['OPENAI_API_KEY']\nsecret=settings.secret_of_2024_team",
        "tokenizer.pad_token = tokenizer.eos_token\neos_token='<|endoftext|>'\nmax_new_tokens=128",
        "def f(password: str | None = None, api_key: Annotated[str, Field2(default=None)] = None): ...",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        'if "-----BEGIN PRIVATE KEY-----" in text: ...',
        'HEADER = b"-----BEGIN OPENSSH PRIVATE KEY-----"\nFOOTER = b"-----END OPENSSH PRIVATE KEY-----"',
        "the machine logs in with a login and a password",
        '{"auth": "required", "authorization": "none"}',
        "eyJ is how a JWT begins; eyJhbGciOi.only.two",
        "arn:aws:secretsmanager:eu-west-1:123:secret:MyTestSecret-a1b2c3",
        "image: registry/user@sha256:" + "a" * 64,
    ],
)
def test_what_is_no_secret_is_not_found(text: str) -> None:
    assert kinds(text, python=True) == set()
    assert kinds(text) == set()


def files(*roots: Path) -> Iterator[Path]:
    for root in roots:
        yield from (file for file in root.rglob("*") if file.is_file() and not {"test", "tests"} & set(file.parts))


def sought(corpus: Iterator[Path]) -> tuple[int, list[str]]:
    count, hits = 0, []
    for file in corpus:
        if file.suffix in {".pyc", ".so", ".a"} or file.stat().st_size > 4 << 20:
            continue
        count += 1
        data = file.read_bytes()
        found = next(search.search(data, python=file.suffix == ".py"), None)
        hits += [f"{file}: {found.what}: {data[max(0, found.start - 40) : found.start + 40]!r}"] if found else []
    return count, hits


EXPLAINED = {
    "winappdbg/sql.py": "a docstring has an address with a password, which is its own name",
    "/test.key": "tornado's tests have a private key",
    "scott:tiger@": "SQLAlchemy's documentation, some twenty times",
    "myuser:mypassword@": "fsspec's example of an address",
    "github://org:repo@": "fsspec's, of which the repository looks like a password",
    "jo%40email.com:a%20secret@": "httpx2's example of an address",
    "@ssh.hf.jobs": "huggingface_hub's, of a Job that is long over",
    "kXxh3Secrets": "a constant of a hash function, in a header of Arrow's",
    '"s3.secret-access-key"': "pyiceberg's name of a setting, in a constant of that name",
}
"""What is found and is there, by a part of it: addresses with passwords are found in examples too."""


def test_nothing_is_found_in_our_own_examples_and_in_much_of_python() -> None:
    """The whole of it, with FULL=1, is below: 11,000 files."""
    library = Path(sysconfig.get_path("stdlib"))
    some = (library / name for name in ("asyncio", "concurrent", "email", "http", "logging", "urllib"))
    roots = [REPOSITORY / name for name in ("examples", "docs", "runtimes", "manifests")]
    packages = Path(sysconfig.get_path("purelib"))
    count, hits = sought(files(*roots, *some, *(packages / name for name in ("aiohttp", "cryptography", "yaml"))))
    assert hits == []
    assert count > 300


@pytest.mark.full
def test_nothing_is_found_in_all_of_python_and_of_the_installed_packages() -> None:
    library, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    of_python = (file for file in files(library) if "site-packages" not in file.parts)
    count, hits = sought(of_python)
    more, others = sought(files(packages, REPOSITORY / "src"))
    assert [hit for hit in hits + others if not any(part in hit for part in EXPLAINED)] == []
    assert count + more > 5000


WORDS = sorted({word for form in forms.FORMS for word in form.words})
FILLINGS = (
    b"",
    b" ",
    b"A",
    b'="',
    b": ",
    b"\n",
    b"\\n ",
    b"a@",
    b".eyJ",
    b"A" * 16 + b" ",
    b" login a password ",
    b"=" * 9,
)
SHAPES = [
    *(
        word + FILLINGS[(number + turn) % len(FILLINGS)]
        for number, word in enumerate(WORDS)
        for turn in range(12 if FULL else 1)
    ),
    b"eyJaaaaaaaaaa.",
    b"wandb" + b"a",
    b"://a:",
    b"AKIA" + b"A" * 16 + b" ",
    b"-----BEGIN PRIVATE KEY-----\n",
    b"-----BEGIN " + b"A" * 30,
    b"user:\n a:b\n",
    b"QUFB" * 6 + b"\n",
    b"\n" * 60,
    b"x" * 4000 + b"\nuser:\n",
]


def cost(shape: bytes, size: int) -> float:
    data = (shape * (size // len(shape) + 1))[:size]
    begin = time.thread_time()
    for _ in search.search(data):
        pass
    return time.thread_time() - begin


def test_no_text_takes_more_than_its_share_of_time() -> None:
    """Four times the text takes about four times as long, whatever it is: shown for the costliest, up to 1 MB."""
    small, size, large = (16_000, 250_000, 1_000_000) if FULL else (4_000, 100_000, 400_000)
    for shape in sorted(SHAPES, key=lambda shape: -cost(shape, small))[:6]:
        assert cost(shape, large) < 10 * cost(shape, size) + 0.2, shape


@pytest.mark.parametrize("coat", ["gzip", "bzip2", "xz", "zlib", "zip", "zip of gzip of base64"])
def test_a_bomb_is_refused_before_it_is_unpacked(coat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "UNPACKED", 1 << 20)
    assert kinds(COATS[coat](b"\0" * (1 << 16))) == set()
    with pytest.raises(search.TooMuchError):
        kinds(COATS[coat](b"\0" * (1 << 22)))


@pytest.mark.parametrize("damage", [slice(0, 40), slice(0, -1), slice(0, 4)])
@pytest.mark.parametrize("coat", ["gzip", "bzip2", "xz", "zlib", "zip", "utf-16"])
def test_a_damaged_archive_is_no_accident(coat: str, damage: slice) -> None:
    list(search.search(COATS[coat](b"harmless text of a file " * 10)[damage]))


@pytest.mark.parametrize(
    "source", [b"\0", b"def f(:", b"(" * 100_000, b"-" * 100_000 + b"1", b"x = '\\ud800'", b"\xff"]
)
def test_a_source_that_is_none_is_no_accident(source: bytes) -> None:
    list(search.search(source, python=True))
