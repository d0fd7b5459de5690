from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainplane.kube import errors
from trainplane.kube.codec import (
    LONGEST_RETRY,
    Lines,
    ListOf,
    decode,
    decode_event,
    decode_page,
    decoder,
    encode,
    error_from_status,
    retry_after_seconds,
)

# The characters that framing and JSON could stumble over; the whole of Unicode takes Hypothesis seconds to load.
texts = st.text('a\n\r"\\{}é\u2028\x00😀', max_size=8)
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts, children, max_size=3),
    max_leaves=8,
)
events = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]), "object": trees}),
    max_size=6,
)


@st.composite
def splits(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Cut bytes anywhere, also twice in one place."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


class TestLines:
    @settings(deadline=None)
    @given(sent=events, data=st.data())
    def test_any_split_of_any_event_stream_gives_the_same_events(
        self, sent: list[dict[str, Any]], data: st.DataObject
    ) -> None:
        stream = b"".join(msgspec.json.encode(event) + b"\n" for event in sent)
        lines = Lines()
        received = [decode_event(line) for chunk in data.draw(splits(stream)) for line in lines.feed(chunk)]
        assert [(event.type, msgspec.json.decode(event.object)) for event in received] == [
            (event["type"], event["object"]) for event in sent
        ]
        assert lines.rest() == b""

    @settings(deadline=None)
    @given(stream=st.binary(), data=st.data())
    def test_lines_and_rest_are_what_splitting_the_whole_gives(self, stream: bytes, data: st.DataObject) -> None:
        lines = Lines()
        received = [line for chunk in data.draw(splits(stream)) for line in lines.feed(chunk)]
        assert [*received, lines.rest()] == stream.split(b"\n")

    def test_a_cut_event_is_left_over(self) -> None:
        lines = Lines()
        assert lines.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
        assert lines.rest() == b'{"b"'

    def test_a_line_past_the_limit_is_refused_and_shorter_ones_are_not(self) -> None:
        lines = Lines(line_max=10)
        for _ in range(5):
            assert lines.feed(b"12345") == []
            assert lines.feed(b"67890\n") == [b"1234567890"]
        lines.feed(b"1234567890")
        with pytest.raises(errors.StreamError, match="longer than 10 bytes"):
            lines.feed(b"1")

    def test_cost_is_linear_in_the_length_of_a_line(self) -> None:
        def seconds(chunks: int) -> float:
            lines = Lines()
            chunk = b"x" * 1024
            began = time.process_time()
            for _ in range(chunks):
                lines.feed(chunk)
            (line,) = lines.feed(b"\n")
            assert len(line) == chunks * 1024
            return time.process_time() - began

        small = min(seconds(2_000) for _ in range(3))
        large = min(seconds(32_000) for _ in range(3))
        # Sixteen times the bytes: quadratic framing costs 256 times as much.
        assert large < 100 * max(small, 1e-4)


class TestDecode:
    def test_trees_structs_and_text(self) -> None:
        class Named(msgspec.Struct):
            name: str

        assert decode(b'{"name":"a"}', dict) == {"name": "a"}
        assert decode(b'{"name":"a","more":1}', Named).name == "a"
        assert decode(b'{ "name":"a"}', bytes) == b'{ "name":"a"}'
        assert decode(msgspec.Raw(b'{"name":"a"}'), Named).name == "a"

    def test_a_misfit_says_where_and_shows_the_beginning(self) -> None:
        class Numbered(msgspec.Struct):
            number: int

        with pytest.raises(errors.DecodeError, match=r"Numbered.*\$\.number.*begins b'\{\"number\"") as caught:
            decode(b'{"number":"one"}', Numbered)
        assert not caught.value.retryable
        with pytest.raises(errors.DecodeError, match="not dict"):
            decode(b"<html>", dict)
        with pytest.raises(errors.DecodeError, match=r"begins b'\{\"number\""):
            decode(msgspec.Raw(b'{"number":"one"}'), Numbered)

    def test_decoders_are_made_once(self) -> None:
        assert decoder(ListOf[msgspec.Raw]) is decoder(ListOf[msgspec.Raw])

    def test_encode_passes_bytes_and_encodes_the_rest(self) -> None:
        assert encode(b"{ }") == b"{ }"
        assert encode({"a": [1]}) == b'{"a":[1]}'


class TestPage:
    def test_items_stay_the_bytes_the_server_sent(self) -> None:
        page = decode_page(
            b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"tok","remainingItemCount":3},'
            b'"items":[{"a": 1},{"b":2}]}'
        )
        assert [bytes(item) for item in page.items] == [b'{"a": 1}', b'{"b":2}']
        assert (page.resource_version, page.next, page.remaining) == ("7", "tok", 3)

    @pytest.mark.parametrize("items", [b',"items":null', b"", b',"items":[]'])
    def test_no_items_however_they_are_written(self, items: bytes) -> None:
        page = decode_page(b'{"metadata":{"resourceVersion":"7"}' + items + b"}")
        assert page.items == []
        assert (page.next, page.remaining) == ("", None)


class TestEvent:
    def test_an_error_event_raises_what_its_status_says(self) -> None:
        line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
        with pytest.raises(errors.GoneError, match="too old"):
            decode_event(line)

    @pytest.mark.parametrize("line", [b"{", b'{"type":"ADDED"}', b"[]", b'{"type":1,"object":{}}', b"\xff\xfe"])
    def test_what_is_no_event_is_a_broken_stream(self, line: bytes) -> None:
        with pytest.raises(errors.StreamError, match="a watch stream carried"):
            decode_event(line)


class TestStatus:
    @pytest.mark.parametrize("asked", ["soon", [1], {}, -1, 1e300, None])
    def test_a_wait_that_is_none_is_not_waited_for(self, asked: Any) -> None:
        body = encode({"kind": "Status", "code": 429, "reason": "a", "details": {"retryAfterSeconds": asked}})
        assert error_from_status(body).retry_after is None

    def test_what_is_nested_too_deep_is_an_error_of_ours(self) -> None:
        deep = b'{"kind":"Status","type":"ADDED","object":{},"items":' + b"[" * 100_000
        with pytest.raises(errors.DecodeError):
            decode(deep, dict)
        with pytest.raises(errors.DecodeError):
            decode_page(deep)
        with pytest.raises(errors.StreamError):
            decode_event(deep)
        assert error_from_status(deep, 500).code == 500

    def test_a_status_keeps_all_it_says(self) -> None:
        body = encode(
            {
                "kind": "Status",
                "code": 422,
                "reason": "Invalid",
                "message": "spec.x: wrong",
                "details": {"causes": [{"field": "spec.x"}]},
            }
        )
        error = error_from_status(body, 422)
        assert isinstance(error, errors.InvalidError)
        assert (error.code, error.reason, error.message) == (422, "Invalid", "spec.x: wrong")
        assert error.details["causes"][0]["field"] == "spec.x"
        assert error.retry_after is None

    @pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b'"text"', b'{"message":1}', b'{"other":1}'])
    def test_a_body_that_is_no_status_leaves_the_code(self, body: bytes) -> None:
        error = error_from_status(body, 502)
        assert isinstance(error, errors.UnavailableError)
        assert (error.code, error.message) == (502, body.decode())

    def test_retry_after_comes_from_the_header_or_the_details(self) -> None:
        body = encode({"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 4}})
        assert error_from_status(body, 429).retry_after == 4.0
        assert error_from_status(body, 429, {"Retry-After": "2"}).retry_after == 2.0

    @pytest.mark.parametrize(
        ("headers", "expected"),
        [
            ({}, None),
            ({"Retry-After": "7"}, 7.0),
            ({"Retry-After": " 0 "}, 0.0),
            ({"Retry-After": "soon"}, None),
            ({"Retry-After": "-1"}, None),
            ({"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT"}, None),
            ({"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT", "Date": "Thu, 01 Jan 2026 00:00:10 GMT"}, 20.0),
            ({"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT", "Date": "Thu, 01 Jan 2026 00:00:10 GMT"}, 0.0),
        ],
    )
    def test_retry_after_forms(self, headers: dict[str, str], expected: float | None) -> None:
        assert retry_after_seconds(headers) == expected

    def test_retry_after_against_a_clock(self) -> None:
        now = datetime(2026, 1, 1, 0, 0, 25, tzinfo=UTC)
        assert retry_after_seconds({"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT"}, now) == 5.0


DEEP = b"[" * 5000 + b"]" * 5000


class TestMalformed:
    """Bytes of somebody else's: whatever is wrong with them is a KubeError, since anything else would end a mirror."""

    @pytest.mark.parametrize("value", [b'"\xff"', DEEP, b"1e999", b'{"\xff":1}'], ids=["text", "deep", "number", "key"])
    def test_an_event_is_refused(self, value: bytes) -> None:
        with pytest.raises(errors.KubeError):
            decode(decode_event(b'{"type":"ADDED","object":' + value + b"}").object, dict)

    @pytest.mark.parametrize("body", [b"\xff", b'{"message":"\xff","reason":"x"}', DEEP], ids=["bytes", "text", "deep"])
    def test_a_failure_is_still_a_failure(self, body: bytes) -> None:
        assert error_from_status(body, 503).code == 503

    @pytest.mark.parametrize("asked", [{}, [], "x", "²", True, -1, 1e300, None, 10**30])
    def test_nonsense_is_not_waited_for(self, asked: Any) -> None:
        body = encode(
            {"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": asked}}
        )
        assert (error_from_status(body, 429).retry_after or 0) <= 1

    def test_no_header_makes_us_wait_for_ever(self) -> None:
        assert retry_after_seconds({"Retry-After": "9" * 400}) == LONGEST_RETRY
