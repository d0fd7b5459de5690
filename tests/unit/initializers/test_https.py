from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.servers import Handler, Site, serving

if TYPE_CHECKING:
    from tests.unit.initializers.conftest import Step

MIB = 1 << 20
CONTENT = random.Random(1).randbytes(3 * MIB + 17)  # noqa: S311 no secret
SUM = hashlib.sha256(CONTENT).hexdigest()


def test_a_file_arrives_in_parallel_ranges(step: Step) -> None:
    with serving(Site({"data/file.bin": CONTENT})) as site:
        outcome = step.run(f"{site.url}/data/file.bin#sha256={SUM}")
    assert (outcome.code, outcome.message) == (0, "")
    assert step.content() == {"file.bin": CONTENT}
    ranges = {asked.headers.get("range") for asked in site.asked[1:]}
    assert ranges == {f"bytes={start}-{min(start + MIB, len(CONTENT)) - 1}" for start in range(0, len(CONTENT), MIB)}


def test_a_second_run_asks_nobody(step: Step) -> None:
    with serving(Site({"file.bin": CONTENT})) as site:
        assert step.run(f"{site.url}/file.bin").code == 0
        count = len(site.asked)
        outcome = step.run(f"{site.url}/file.bin")
        assert "nothing to do" in outcome.out
        assert len(site.asked) == count
        (step.folder / "file.bin").write_bytes(b"shorter")
        assert step.run(f"{site.url}/file.bin").code == 0
    assert step.content() == {"file.bin": CONTENT}


def test_a_folder_that_holds_something_else_is_left_alone(step: Step) -> None:
    with serving(Site({"a": b"1", "b": b"2"})) as site:
        assert step.run(f"{site.url}/a").code == 0
        outcome = step.run(f"{site.url}/b")
    assert (outcome.code, outcome.cause) == (1, "Occupied")
    assert step.content() == {"a": b"1"}


@pytest.mark.parametrize("fault", ["cut", "slow", "busy", "broken", "reset", "silent"])
def test_what_passes_is_tried_again(step: Step, fault: str) -> None:
    site = Site({"file.bin": CONTENT})
    site.fault = lambda _: fault if len(site.asked) in (3, 4) else ""
    with serving(site):
        outcome = step.run(f"{site.url}/file.bin")
    assert outcome.code == 0, outcome
    assert step.content() == {"file.bin": CONTENT}


@pytest.mark.parametrize(
    ("fault", "cause", "code"),
    [
        ("busy", "Throttled", 75),
        ("broken", "Unreachable", 75),
        ("reset", "Unreachable", 75),
        ("longer", "Hostile", 1),
        ("elsewhere", "Hostile", 1),
        ("grown", "Changed", 75),
        ("replaced", "Changed", 75),
        ("rotten", "Checksum", 1),
    ],
)
def test_what_does_not_pass_fails_with_its_cause_and_leaves_no_file(
    step: Step, fault: str, cause: str, code: int
) -> None:
    site = Site({"file.bin": CONTENT})
    site.fault = lambda asked: fault if asked.headers.get("range") != "bytes=0-0" else ""
    with serving(site):
        outcome = step.run(f"{site.url}/file.bin#sha256={SUM}", RETRY_SECONDS="1")
    assert (outcome.cause, outcome.code) == (cause, code), outcome
    assert len(outcome.message.splitlines()) == 2
    assert step.content() == {}
    assert not (step.folder / ".trainplane/complete").exists()


def test_a_server_without_ranges_is_read_in_one_piece(step: Step) -> None:
    site = Site({"file.bin": CONTENT}, ranges=False)
    site.fault = lambda _: "cut" if len(site.asked) == 2 else ""
    with serving(site):
        outcome = step.run(f"{site.url}/file.bin")
    assert outcome.code == 0, outcome
    assert step.content() == {"file.bin": CONTENT}


@pytest.mark.parametrize("status", [200, 416])
def test_an_empty_file_is_a_file(step: Step, status: int) -> None:
    class Empty(Handler):
        def serve(self, path: str) -> None:
            del path
            self.answer(status if "range" in self.asked.headers else 200, {}, b"")

    with serving(Site(), Empty) as site:
        outcome = step.run(f"{site.url}/nothing")
    assert outcome.code == 0, outcome
    assert step.content() == {"nothing": b""}


def test_parts_of_another_size_cost_nothing_that_is_whole(step: Step) -> None:
    with serving(Site({"file.bin": CONTENT})) as site:
        assert step.run(f"{site.url}/file.bin").code == 0
        (step.folder / ".trainplane/complete").unlink()
        sent = site.sent
        assert step.run(f"{site.url}/file.bin", PART_MIB="2").code == 0
        assert site.sent == sent + 1


def test_a_whole_folder_is_not_written_to(step: Step) -> None:
    with serving(Site({"file.bin": CONTENT})) as site:
        assert step.run(f"{site.url}/file.bin").code == 0
        before = sorted((path, path.stat().st_mtime_ns) for path in step.folder.rglob("*"))
        assert step.run(f"{site.url}/file.bin").code == 0
        assert sorted((path, path.stat().st_mtime_ns) for path in step.folder.rglob("*")) == before


def test_a_body_without_end_stops_at_the_volumes_room(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainplane.initializers.transfer._RESERVE", _all_but(step, 4 * MIB))
    site = Site({"file.bin": b"x"}, ranges=False, fault=lambda _: "endless")
    with serving(site):
        outcome = step.run(f"{site.url}/file.bin")
    assert outcome.cause == "NoSpace"
    assert "without end" in outcome.message
    assert step.content() == {}


def test_no_space_is_said_before_the_first_byte(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainplane.initializers.transfer._RESERVE", _all_but(step, MIB))
    with serving(Site({"file.bin": CONTENT})) as site:
        outcome = step.run(f"{site.url}/file.bin")
    assert (outcome.cause, outcome.code) == ("NoSpace", 1)
    assert [asked.headers["range"] for asked in site.asked] == ["bytes=0-0"]


def _all_but(step: Step, room: int) -> int:
    import os  # noqa: PLC0415 here alone

    volume = os.statvfs(step.log.parent)
    return volume.f_bavail * volume.f_frsize - room


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [(404, b"", "NotFound"), (403, b"no", "Denied"), (401, b"token Expired", "Expired"), (418, b"", "Invalid")],
)
def test_an_answer_means_a_cause(step: Step, status: int, body: bytes, cause: str) -> None:
    with serving(Site(answers={"/file": (status, {}, body)})) as site:
        assert step.run(f"{site.url}/file").cause == cause


def test_a_token_stays_with_the_origin_it_was_given_for(step: Step) -> None:
    with serving(Site({"file": b"content"})) as other:
        site = Site(token="tok-secret-1", answers={"/file": (302, {"Location": f"{other.url}/file"}, b"")})
        with serving(site):
            outcome = step.run(f"{site.url}/file", ACCESS_TOKEN="tok-secret-1")
    assert outcome.code == 0, outcome
    assert all(asked.headers["authorization"] == "Bearer tok-secret-1" for asked in site.asked)
    assert other.asked
    assert not any("authorization" in asked.headers for asked in other.asked)
    assert "tok-secret-1" not in outcome.out + outcome.err


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/x", "file:///etc/passwd", "", "http://[bad", "/file"])
def test_a_redirect_to_nowhere_is_refused(step: Step, location: str) -> None:
    with serving(Site(answers={"/file": (302, {"Location": location}, b"")})) as site:
        outcome = step.run(f"{site.url}/file")
    assert outcome.cause == "Hostile", outcome


def test_a_token_is_not_sent_without_encryption(step: Step) -> None:
    outcome = step.run("http://example.invalid/file", ACCESS_TOKEN="tok-secret-1")
    assert outcome.cause == "Invalid"
    assert "without encryption" in outcome.message


@pytest.mark.parametrize("name", ["%2e%2e", "a%00b", ".trainplane", "x" * 300])
def test_a_name_that_leads_elsewhere_is_refused(step: Step, name: str) -> None:
    with serving(Site()) as site:
        site.answers[f"/{name}"] = (200, {}, b"evil")
        outcome = step.run(f"{site.url}/{name}")
    assert outcome.cause == "Hostile", outcome
    assert step.content() == {}


@pytest.mark.parametrize("fault", ["crumb", "drip"])
def test_a_trickle_does_not_last_for_ever(step: Step, fault: str) -> None:
    """Each try brings a few bytes, or one brings them without end: that is not getting on."""
    site = Site({"file.bin": CONTENT})
    site.fault = lambda asked: fault if asked.headers.get("range") != "bytes=0-0" else ""
    with serving(site):
        outcome = step.run(f"{site.url}/file.bin", RETRY_SECONDS="1")
    assert (outcome.cause, outcome.code) == ("Unreachable", 75), outcome
    assert len(site.asked) > 4
    assert step.content() == {}


@pytest.mark.parametrize(
    "uri", ["https://", "https://host/", "https://host/a#sha256=12", "https://u:p@host/a", "ftp://x/y"]
)
def test_a_uri_that_means_nothing_is_refused(step: Step, uri: str) -> None:
    outcome = step.run(uri)
    assert (outcome.cause, outcome.code) == ("Invalid", 1)
    assert "u:p" not in outcome.out + outcome.err + outcome.message
