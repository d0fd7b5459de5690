"""Another attempt: what the user wrote, under a name that says which attempt it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.backend import FakeBackend
from tests.unit.client.reading.documents import condition, train_job
from trainplane.api import names
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.anew import attempt_of, first_of, next_attempt, refuse_unfinished, retried
from trainplane.client.errors import InvalidError, NotFoundError, RefusedError

FAILED = condition("Failed")


def attempt(name: str, first: str) -> dict[str, Any]:
    return train_job(name, metadata={"annotations": {names.ANNOTATION_RETRY_OF: first}}, conditions=[FAILED])


class TestTheDocument:
    def test_it_says_which_was_the_first_and_nothing_of_how_that_ended(self) -> None:
        made = retried(train_job("fit", nodes=2, conditions=[FAILED]), "fit-2")
        assert made["metadata"] == {"name": "fit-2", "annotations": {names.ANNOTATION_RETRY_OF: "fit"}}
        assert made["spec"]["trainer"] == {"numNodes": 2}
        assert "status" not in made

    def test_one_that_was_suspended_when_it_ended_is_not_held(self) -> None:
        assert "suspend" not in retried(train_job("fit", spec={"suspend": True}), "fit-2")["spec"]

    def test_in_its_own_place_it_is_no_attempt_of_itself(self) -> None:
        assert "annotations" not in retried(train_job("fit"), "fit")["metadata"]

    def test_the_document_that_it_was_made_of_is_not_changed(self) -> None:
        job = train_job("fit", spec={"suspend": True})
        retried(job, "fit-2")
        assert job["spec"]["suspend"] is True


class TestNumbers:
    def test_a_number_in_a_name_is_no_attempt_by_itself(self) -> None:
        job = train_job("resnet-50")
        assert (first_of(job), next_attempt(job)) == ("resnet-50", 2)

    def test_the_third_follows_the_second(self) -> None:
        job = attempt("fit-2", "fit")
        assert (first_of(job), next_attempt(job)) == ("fit", 3)

    @pytest.mark.parametrize("first", ["other", "fit-2-", "", "fi", "fit-2"])
    def test_an_annotation_that_does_not_go_with_the_name_counts_for_nothing(self, first: str) -> None:
        assert first_of(attempt("fit-2", first)) == "fit-2"

    @pytest.mark.parametrize("name", ["fit", "fit-", "fit-x", "fit--1", "fit-9999999", "fit-²", "a-fit-2"])
    def test_names_that_say_no_attempt(self, name: str) -> None:
        assert attempt_of(name, "fit") == 0


class TestTheCall:
    async def test_the_first_free_number_is_taken(self) -> None:
        backend = FakeBackend()
        backend.documents = {"fit": train_job("fit", conditions=[FAILED]), "fit-2": {}, "fit-3": {}}
        assert await AsyncTrainerClient(backend=backend).retry_job("fit") == "fit-4"
        ((_, document),) = backend.calls
        assert document["metadata"]["name"] == "fit-4"

    async def test_a_name_may_be_given(self) -> None:
        backend = FakeBackend()
        backend.documents = {"fit": train_job("fit", conditions=[condition("Complete")])}
        assert await AsyncTrainerClient(backend=backend).retry_job("fit", "again") == "again"

    @pytest.mark.parametrize(("name", "error"), [("Not a name", InvalidError), ("x" * 64, InvalidError)])
    async def test_a_name_that_is_none(self, name: str, error: type[Exception]) -> None:
        backend = FakeBackend()
        backend.documents = {"fit": train_job("fit", conditions=[FAILED])}
        with pytest.raises(error, match="name must be of small letters"):
            await AsyncTrainerClient(backend=backend).retry_job("fit", name)
        assert backend.calls == []

    async def test_what_is_not_over_is_not_tried_again(self) -> None:
        backend = FakeBackend()
        backend.documents = {"fit": train_job("fit")}
        with pytest.raises(RefusedError, match="TrainJob fit is not over and cannot be retried"):
            await AsyncTrainerClient(backend=backend).retry_job("fit")
        with pytest.raises(NotFoundError):
            await AsyncTrainerClient(backend=backend).retry_job("none")

    async def test_in_its_place_it_keeps_its_name(self) -> None:
        backend = FakeBackend()
        assert await AsyncTrainerClient(backend=backend).retry_job("fit", replace=True) == "fit"
        assert backend.calls == [("restart_job", "fit")]
        with pytest.raises(InvalidError, match="with replace the name stays fit"):
            await AsyncTrainerClient(backend=backend).retry_job("fit", "other", replace=True)


def test_one_that_failed_is_over() -> None:
    refuse_unfinished(train_job("fit", conditions=[FAILED]))
