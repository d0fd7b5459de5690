"""Which URIs name a place that output can be sent to."""

from __future__ import annotations

import pytest

from trainplane.api.objectname import is_object_name
from trainplane.api.output import LONGEST, OutputUriError, read_output


@pytest.mark.parametrize(
    ("text", "place", "path", "claim"),
    [
        ("s3://bucket/models/mine", "bucket", "models/mine", None),
        ("s3://bucket/models/", "bucket", "models", None),
        ("s3://bucket", "bucket", "", None),
        ("gs://bucket/a=b/c+d", "bucket", "a=b/c+d", None),
        ("az://container/x", "container", "x", None),
        ("hf://me/model@branch/folder", "me", "model@branch/folder", None),
        ("pvc://models/mine", "models", "mine", "models"),
        ("pvc://models", "models", "", "models"),
    ],
)
def test_places(text: str, place: str, path: str, claim: str | None) -> None:
    uri = read_output(text)
    assert (uri.place, uri.path, uri.claim, uri.text) == (place, path, claim, text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "must begin"),
        ("bucket/models", "must begin"),
        ("file:///models", "must begin"),
        ("https://example.org/x", "must begin"),
        ("S3://bucket", "must begin"),
        ("s3://user:password@bucket/x", "password"),
        ("s3://key@bucket/x", "password"),
        ("hf://token@me/model", "password"),
        ("hf://gpt2", "repository"),
        ("s3:///models", "bucket"),
        ("s3://-bucket/x", "bucket"),
        ("pvc://Claim/x", "claim"),
        ("pvc://../x", "claim"),
        ("s3://bucket/a/../b", "'..'"),
        ("s3://bucket/./b", "'..'"),
        ("s3://bucket//b", "empty"),
        ("s3://bucket/a\nb", "characters"),
        ("s3://bucket/a\n", "characters"),
        ("s3://bucket\n/a", "bucket"),
        ("s3://bucket/a b", "characters"),
        ("s3://bucket/$(ACCESS_KEY)", "characters"),
        ("s3://bucket/a?X-Amz-Signature=1", "characters"),
        ("s3://bucket/a#b", "characters"),
        ("s3://bucket/\x1b[31m", "characters"),
        ("s3://bucket/" + "a" * LONGEST, "characters"),
    ],
)
def test_what_names_none(text: str, word: str) -> None:
    with pytest.raises(OutputUriError) as caught:
        read_output(text)
    assert word in str(caught.value)
    assert "password@" not in str(caught.value), "what may be a credential is not repeated"


def test_a_name_says_no_other_namespace() -> None:
    assert is_object_name("store-keys.v1")
    for text in ("", "other/keys", "Keys", "a b", "a\n", "a" * 254):
        assert not is_object_name(text)
