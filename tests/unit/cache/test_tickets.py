from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.cache.errors import DeniedError, ExpiredError, InvalidError
from trainplane.cache.tickets import LARGEST, LEEWAY, Signer, ticket

SIGNER = Signer(b"k" * 32)
NAME = "a" * 64
GRANT = SIGNER.grant(NAME, 10, 20, 1000.0)


def test_a_ticket_says_what_was_granted_and_asked_for() -> None:
    read = SIGNER.read(ticket(GRANT, (3, 1, 2)), 999)
    assert (read.grant.manifest, read.grant.start, read.grant.stop, read.blocks) == (NAME, 10, 20, (3, 1, 2))


def test_a_ticket_expires_with_leeway_for_clocks() -> None:
    assert SIGNER.read(ticket(GRANT), 1000 + LEEWAY).blocks == ()
    with pytest.raises(ExpiredError):
        SIGNER.read(ticket(GRANT), 1001 + LEEWAY)


@given(st.integers(0, len(GRANT) - 1), st.integers(1, 255))
def test_a_grant_of_which_one_byte_is_changed_is_denied(at: int, change: int) -> None:
    forged = bytearray(GRANT)
    forged[at] ^= change
    with pytest.raises(DeniedError):
        SIGNER.read(ticket(bytes(forged)), 0)


@given(st.binary(max_size=300))
def test_whatever_else_is_sent_as_a_ticket_is_denied(sent: bytes) -> None:
    for attack in (sent, b"TPC1" + sent, ticket(sent), ticket(GRANT)[:-1] + sent[:0], ticket(GRANT)[: len(sent)]):
        with pytest.raises(DeniedError):
            SIGNER.read(attack, 0)


def test_a_ticket_of_another_key_is_denied() -> None:
    with pytest.raises(DeniedError):
        Signer(b"o" * 32).read(ticket(GRANT), 0)


def test_what_is_signed_for_one_purpose_is_no_good_for_another() -> None:
    content = SIGNER.check("grant", GRANT)
    with pytest.raises(DeniedError):
        SIGNER.read(ticket(SIGNER.sign("hello", content)), 0)


def test_a_ticket_that_is_too_long_or_cut_off_is_denied() -> None:
    with pytest.raises(DeniedError):
        SIGNER.read(ticket(GRANT, tuple(range(LARGEST // 4))), 0)
    with pytest.raises(DeniedError):
        SIGNER.read(ticket(GRANT) + struct.pack("<H", 1), 0)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(InvalidError, match="8 bytes"):
        Signer(b"12345678")
