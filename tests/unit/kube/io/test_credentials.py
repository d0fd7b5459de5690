from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from trainplane.kube.credentials import (
    Credential,
    StaticCredentials,
    TokenFile,
    basic,
    bearer,
)
from trainplane.kube.errors import CredentialError
from trainplane.kube.execplugin import ExecCredentials
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.kube.execplugin import ExecPlugin


class CountingPlugin:
    """Answers token-1, token-2 and so on, each good for `lifetime`."""

    def __init__(self, clock: FakeClock, lifetime: timedelta | None = None) -> None:
        self.runs = 0
        self._clock = clock
        self._lifetime = lifetime

    async def run(self) -> tuple[Credential, datetime | None]:
        self.runs += 1
        await asyncio.sleep(0)
        return bearer(f"token-{self.runs}"), self._clock.now() + self._lifetime if self._lifetime else None


def exec_credentials(plugin: CountingPlugin, clock: FakeClock) -> ExecCredentials:
    stand_in: ExecPlugin = plugin  # type: ignore[assignment] # only `run` is asked for
    return ExecCredentials(stand_in, clock)


async def test_static_credentials_never_change() -> None:
    credentials = StaticCredentials(basic("ann", "pä:ss"))
    assert await credentials.current() == Credential("Basic YW5uOnDDpDpzcw==")
    assert not credentials.refused(await credentials.current())
    assert await StaticCredentials().current() == Credential(None, None)


class TestTokenFile:
    async def test_a_rotated_token_is_seen_within_a_minute_and_not_read_on_every_request(self, tmp_path: Path) -> None:
        clock, file = FakeClock(), tmp_path / "token"
        file.write_text("one\n")
        credentials = TokenFile(file, clock)
        assert await credentials.current() == bearer("one")
        file.write_text("two\n")
        await clock.advance(59)
        assert await credentials.current() == bearer("one")
        await clock.advance(1)
        assert await credentials.current() == bearer("two")

    async def test_a_refused_token_is_read_again_at_once(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("one")
        credentials = TokenFile(file, FakeClock())
        old = await credentials.current()
        assert not credentials.refused(old), "the file still holds the refused token"
        file.write_text("two")
        assert credentials.refused(old)
        assert await credentials.current() == bearer("two")

    @pytest.mark.parametrize("damage", ["missing", "empty"])
    async def test_a_file_in_the_middle_of_rotation_leaves_the_old_token(self, tmp_path: Path, damage: str) -> None:
        clock, file = FakeClock(), tmp_path / "token"
        file.write_text("one")
        credentials = TokenFile(file, clock)
        await credentials.current()
        if damage == "missing":
            file.unlink()
        else:
            file.write_text(" \n")
        await clock.advance(120)
        assert await credentials.current() == bearer("one")
        assert not credentials.refused(bearer("one"))

    async def test_no_token_at_all_is_an_error_that_names_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        with pytest.raises(CredentialError, match=f"cannot read the token file {file}"):
            await TokenFile(file, FakeClock()).current()
        file.write_text("")
        with pytest.raises(CredentialError, match="is empty"):
            await TokenFile(file, FakeClock()).current()
        assert not TokenFile(file, FakeClock()).refused(bearer("x"))

    async def test_an_inline_token_serves_until_the_file_can_be_read(self, tmp_path: Path) -> None:
        clock, file = FakeClock(), tmp_path / "token"
        credentials = TokenFile(file, clock, fallback="inline")
        assert await credentials.current() == bearer("inline")
        file.write_text("from file")
        await clock.advance(60)
        assert await credentials.current() == bearer("from file")


class TestExecCredentials:
    async def test_an_answer_is_kept_until_shortly_before_it_expires(self) -> None:
        clock = FakeClock()
        plugin = CountingPlugin(clock, timedelta(minutes=10))
        credentials = exec_credentials(plugin, clock)
        assert await credentials.current() == bearer("token-1")
        await clock.advance(580)
        assert await credentials.current() == bearer("token-1")
        await clock.advance(10)
        assert await credentials.current() == bearer("token-2")

    async def test_an_answer_without_expiry_is_kept_until_refused(self) -> None:
        clock = FakeClock()
        plugin = CountingPlugin(clock)
        credentials = exec_credentials(plugin, clock)
        first = await credentials.current()
        await clock.advance(86400)
        assert await credentials.current() == first
        assert credentials.refused(first)
        assert await credentials.current() == bearer("token-2")

    async def test_concurrent_requests_share_one_run(self) -> None:
        clock = FakeClock()
        plugin = CountingPlugin(clock)
        credentials = exec_credentials(plugin, clock)
        answers = await asyncio.gather(*(credentials.current() for _ in range(20)))
        assert set(answers) == {bearer("token-1")}
        for answer in answers:
            assert credentials.refused(answer)
        answers = await asyncio.gather(*(credentials.current() for _ in range(20)))
        assert set(answers) == {bearer("token-2")}
        assert credentials.refused(bearer("token-1")), "a late 401 to the older token asks for the newer one"
        assert await credentials.current() == bearer("token-2")
        assert plugin.runs == 2
