"""What people read: progress, causes with remedies, and never a secret."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.servers import Site, serving
from trainplane.initializers import errors
from trainplane.initializers.console import Console
from trainplane.initializers.progress import Progress, duration, readable
from trainplane.initializers.request import read_request
from trainplane.initializers.secrets import HIDDEN, Secrets, shown

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.initializers.conftest import Step

SECRETS = {
    "ACCESS_TOKEN": "hf_abcdefgh",
    "HF_TOKEN": "hf_other+/=",
    "SECRET_ACCESS_KEY": "wJalr/XUtn",
    "AWS_SESSION_TOKEN": "IQoJb3Jp",
    "AZURE_STORAGE_SAS_TOKEN": "sv=2026&sig=abc%3D",
    "AZURE_STORAGE_ACCOUNT_KEY": "a2V5a2V5",
    "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(
        {"type": "service_account", "private_key": "-----BEGIN\nMIIEvQ\n-----END"}
    ),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def console(out: io.StringIO, log: Path | None = None, env: dict[str, str] | None = None) -> Console:
    return Console(Secrets(env or {}), out, out, log)


def test_elsewhere_progress_is_plain_lines_ten_seconds_apart() -> None:
    out, clock = io.StringIO(), Clock()
    progress = Progress(console(out), clock)
    progress.begin(100 << 20, 4)
    for second in range(1, 21):
        clock.now = second
        progress.add(1 << 20)
    progress.add_file()
    progress.end()
    assert out.getvalue().splitlines() == [
        "10% 10.0 MiB of 100.0 MiB, 0/4 files, 1.0 MiB/s, 1 min 30 s left",
        "20% 20.0 MiB of 100.0 MiB, 0/4 files, 1.0 MiB/s, 1 min 20 s left",
        "1 files, 20.0 MiB; fetched 20.0 MiB in 20 s (1.0 MiB/s)",
    ]


def test_on_a_terminal_progress_is_a_bar_that_is_written_over() -> None:
    out, clock = Terminal(), Clock()
    progress = Progress(console(out), clock)
    progress.begin(100, 1)
    clock.now = 1
    progress.add(50)
    assert out.getvalue() == "\r\x1b[2K[############............] 50% 50 B of 100 B, 0/1 files, 50 B/s, 1 s left"


def test_what_an_earlier_run_left_is_no_speed_of_this_one() -> None:
    out, clock = io.StringIO(), Clock()
    progress = Progress(console(out), clock)
    progress.begin(None, 1)
    progress.have(1000)
    clock.now = 10
    progress.add(100)
    assert out.getvalue() == "1.1 KiB, 0/1 files, 10 B/s\n"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (400 << 30, "400.0 GiB"), (1 << 70, "1048576.0 PiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert readable(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (7500, "2 h 05 min")])
def test_times(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("name", SECRETS)
def test_no_form_of_a_secret_is_printed(name: str, tmp_path: Path) -> None:
    out, log = io.StringIO(), tmp_path / "log"
    log.write_text("")
    value = SECRETS[name]
    forms = [value, repr(value), f"Bearer {value}", *value.splitlines()]
    if name == "GOOGLE_SERVICE_ACCOUNT_KEY":
        forms += ["the key is MIIEvQ", json.loads(value)["private_key"]]
    said = console(out, log, SECRETS)
    for form in forms:
        said.say(form)
        said.fail(errors.DeniedError(f"with {form}", f"do not send {form}"))
        for text in (out.getvalue(), log.read_text()):
            assert value not in text
            assert "MIIEvQ" not in text
            assert HIDDEN in text


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("https://a/b?X-Amz-Signature=1&x=2#sha256=3", f"https://a/b?{HIDDEN}#sha256=3"),
        ("at https://u:p@a/b now", f"at https://{HIDDEN}@a/b now"),
        ("s3://bucket/path", "s3://bucket/path"),
    ],
)
def test_what_urls_carry_is_not_shown(uri: str, text: str) -> None:
    assert shown(uri) == text


def test_where_a_secret_lies_is_no_secret_and_a_terminal_obeys_nobody() -> None:
    secrets = Secrets({"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token"})
    assert secrets.hide("/var/run/token \x1b[31m\x07") == "/var/run/token ?[31m?"


def test_the_termination_message_is_bounded_and_links_are_not_followed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    console(io.StringIO(), log).fail(errors.HostileError("ü" * 5000))
    assert len(log.read_bytes()) <= 4096
    target = tmp_path / "target"
    target.write_text("untouched")
    link = tmp_path / "link"
    link.symlink_to(target)
    console(io.StringIO(), link).fail(errors.HostileError("x"))
    assert target.read_text() == "untouched"


def test_every_error_stands_in_the_tree_with_a_remedy_or_gets_one_where_it_is_raised() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.InitializerError)
    ]
    for kind in kinds:
        assert errors.__doc__ is not None
        line = next(line for line in errors.__doc__.splitlines() if f" {kind.__name__} " in f" {line} ")
        assert ("retryable" in line) == kind.retryable
        assert kind in (errors.InitializerError, errors.InvalidError) or (kind.remedy and line.endswith(kind.whose))
    assert len(kinds) == 14


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "STORAGE_URI is not set"),
        ({"STORAGE_URI": ""}, "STORAGE_URI is not set"),
        ({"STORAGE_URI": "s3://a\nb"}, "control characters"),
        ({"STORAGE_URI": "s3://" + "x" * 3000}, "longer"),
        ({"STORAGE_URI": "s3://a", "PARALLEL": "0"}, "PARALLEL"),
        ({"STORAGE_URI": "s3://a", "PARALLEL": "9" * 30}, "PARALLEL"),
        ({"STORAGE_URI": "s3://a", "PART_MIB": "-1"}, "PART_MIB"),
    ],
)
def test_an_environment_that_means_nothing_names_the_variable(env: dict[str, str], words: str) -> None:
    with pytest.raises(errors.InvalidError, match=words):
        read_request("model", env)


def test_the_references_variables_and_folders() -> None:
    env = {"STORAGE_URI": "hf://a/b", "IGNORE_PATTERNS": "*.bin,*.pt", "ACCESS_TOKEN": ""}
    request = read_request("model", env)
    assert str(request.folder) == "/workspace/model"
    assert request.ignore == ("*.bin", "*.pt")
    assert request.allow == ("*.json", "*.safetensors", "*.model", "*.txt", "*.gguf")
    assert "ACCESS_TOKEN" not in request.env
    dataset = read_request("dataset", {"STORAGE_URI": "hf://a/b"})
    assert (str(dataset.folder), dataset.allow, dataset.ignore) == ("/workspace/dataset", (), ())
    assert "token" not in repr(read_request("model", {**env, "ACCESS_TOKEN": "token"}))


def test_the_program_itself_ends_with_the_code_and_without_a_traceback(tmp_path: Path) -> None:
    """A real process: a store that echoes what it was sent, and a scheme nobody knows."""
    echo = b"<Error><Message>you sent hf_abcdefgh and wJalr/XUtn, and may not</Message></Error>"
    with serving(Site(answers={"/file": (403, {}, echo)})) as site:
        for uri, cause in ((f"{site.url}/file", "Denied"), ("ipfs://x", "Invalid")):
            ended = subprocess.run(
                [sys.executable, "-m", "trainplane.initializers", "dataset", str(tmp_path / "data")],
                env={**SECRETS, "STORAGE_URI": uri},
                capture_output=True,
                text=True,
                check=False,
            )
            said = ended.stdout + ended.stderr
            assert ended.returncode == 1, said
            assert f"\n{cause}: " in f"\n{ended.stderr}"
            assert "Traceback" not in said
            assert not [value for value in SECRETS.values() if value in said]


def test_other_rooms_stay_light() -> None:
    script = "import sys, trainplane, trainplane.initializers.program; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"obstore", "huggingface_hub", "httpx2", "aiohttp", "trainplane.client"} & set(ended.stdout.split())


def test_something_of_ours_that_breaks_is_said_so(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainplane.initializers.schemes.open_source", lambda _: 1 / 0)
    outcome = step.run("s3://a/b")
    assert (outcome.cause, outcome.code) == ("Broken", 1)
    assert "ZeroDivisionError" in outcome.message
