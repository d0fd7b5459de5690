"""Names that are drawn say what runs, and are names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.client.submission.naming import DRAWN, LONGEST_WORD, draw_name
from trainplane.client.types.trainers import CustomTrainer, CustomTrainerContainer, ScriptTrainer, Trainer

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def fit() -> None:
    """Train."""


def _Train__On_2_GPUs() -> None:  # noqa: N802 what people write
    """Train."""


@pytest.mark.parametrize(
    ("trainer", "word"),
    [
        (CustomTrainer(fit), "fit"),
        (CustomTrainer(_Train__On_2_GPUs), "train-on-2-gpus"),
        (ScriptTrainer("src/fine_tune.py"), "fine-tune"),
        (ScriptTrainer("3d.py"), "d"),
        (CustomTrainerContainer("registry:5000/team/resnet:v1.2@sha256:0"), "resnet"),
        (None, "torch-distributed"),
    ],
)
def test_they_begin_with_what_runs(trainer: Trainer | None, word: str) -> None:
    name = draw_name("torch-distributed", trainer)
    assert name.rpartition("-")[0] == word
    assert len(name) == len(word) + 1 + DRAWN


@given(st.text(max_size=300))
def test_whatever_it_is_called_the_name_is_one(text: str) -> None:
    name = draw_name(text, None)
    assert LABEL.fullmatch(name)
    assert len(name) <= LONGEST_WORD + 1 + DRAWN


def test_they_differ() -> None:
    assert len({draw_name("torch", None) for _ in range(200)}) == 200
