"""Commands that the Go plugins inside Kueue put into what it writes back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.admission.objects import trainjob
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.rewritten import is_rewritten

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TUNE: Any = {"command": ["tune", "run"], "args": ["dtype=bf16"], "env": [{"name": "A", "value": ""}]}
RECIPE = ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device"]
MEETING = "--rdzv_endpoint=job-node-0-0.job:29500"
MANAGED = ["output_dir=/workspace/output", "tokenizer.path=/workspace/model/tokenizer.model"]
FLUX: Any = {"command": ["lmp"], "args": ["-in", "file"], "numNodes": 2}
WRAPPED = ["/bin/bash", "/etc/flux-config/entrypoint.sh", "lmp -in file"]


def tune(*words: Any, **others: Any) -> Any:
    return {**TUNE, "command": ["tune", "run", *words], **others}


@pytest.mark.parametrize(
    "trainer",
    [
        tune(*RECIPE),
        tune(*RECIPE, *MANAGED),
        tune(MEETING, "lora_finetune_distributed", "--config", "x", *MANAGED),
        tune(*RECIPE, env=[{"name": "A"}]),
    ],
    ids=["recipe", "settings", "meeting", "and an empty value dropped"],
)
def test_torchtunes_expansion_is_known(trainer: Any) -> None:
    assert is_rewritten(trainer, TUNE)


@pytest.mark.parametrize(
    "trainer",
    [
        tune(),
        tune("mine"),
        tune("mine", "--config", "x"),
        tune(*RECIPE[:2]),
        tune(*RECIPE, "batch_size=2"),
        tune(*RECIPE, args=["dtype=fp32"]),
        tune(*RECIPE, numNodes=2),
        tune(*RECIPE, 7),
        {**TUNE, "command": ["python", *RECIPE]},
        {**TUNE, "command": None},
        None,
    ],
)
def test_any_other_change_of_a_tuning_job_is_a_change(trainer: Any) -> None:
    assert not is_rewritten(trainer, TUNE)


def test_only_tune_run_is_expanded() -> None:
    assert not is_rewritten(tune(*RECIPE), {**TUNE, "command": ["tune", "run", "mine"]})
    assert not is_rewritten(tune(*RECIPE), {key: value for key, value in TUNE.items() if key != "command"})
    assert not is_rewritten(tune(*RECIPE), None)


@pytest.mark.parametrize("stored", [FLUX, {"numNodes": 2, "args": ["x"]}, {"numNodes": 2}])
def test_fluxs_wrapping_is_known(stored: Any) -> None:
    assert is_rewritten({"numNodes": 2, "command": WRAPPED}, stored)


@pytest.mark.parametrize(
    "trainer",
    [
        {"numNodes": 2, "command": WRAPPED, "args": ["more"]},
        {"numNodes": 3, "command": WRAPPED},
        {"numNodes": 2, "command": WRAPPED[:2]},
        {"numNodes": 2, "command": ["/bin/bash", "mine.sh", "lmp"]},
    ],
)
def test_any_other_change_of_a_flux_job_is_a_change(trainer: Any) -> None:
    assert not is_rewritten(trainer, FLUX)


def test_the_stored_trainer_stays_and_whoever_wrote_it_is_told() -> None:
    stored = trainjob(trainer=TUNE, suspend=True)
    written = trainjob(trainer=tune(*RECIPE, env=[{"name": "A"}]), suspend=False)
    defaulted = default_trainjob(written, stored, now=NOW)
    assert defaulted.tree["spec"]["trainer"] is stored["spec"]["trainer"]
    assert defaulted.tree["spec"]["suspend"] is False
    (warning,) = defaulted.warnings
    assert warning.startswith("spec.trainer.command: stays as it was")
    assert default_trainjob(stored, stored, now=NOW).warnings == ()


def test_a_change_by_hand_goes_on_to_be_refused() -> None:
    mine = trainjob(trainer=tune("mine"))
    assert default_trainjob(mine, trainjob(trainer=TUNE), now=NOW).tree["spec"]["trainer"] == tune("mine")


def test_a_create_is_stored_as_it_was_sent() -> None:
    job = trainjob(trainer=tune(*RECIPE))
    assert default_trainjob(job, None, now=NOW).tree == job
