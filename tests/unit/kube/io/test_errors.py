from __future__ import annotations

import inspect
from typing import get_args

import pytest

from trainplane.kube import errors
from trainplane.kube.certificates import CertificateError
from trainplane.kube.errors import ApiError, KubeError, error_class
from trainplane.kube.lease import LeadershipLostError


def tree(class_: type[KubeError] = KubeError) -> list[type[KubeError]]:
    return [class_, *(found for child in class_.__subclasses__() for found in tree(child))]


def of_the_room(class_: type[KubeError]) -> bool:
    return class_.__module__.startswith("trainplane.kube.")


def test_every_error_of_the_room_stands_in_the_drawing() -> None:
    drawn = errors.__doc__ or ""
    ours = [class_ for class_ in tree() if of_the_room(class_)]
    assert {LeadershipLostError, CertificateError} < set(ours), "also those that other modules define"
    assert len(ours) > 20
    assert [class_.__name__ for class_ in ours if class_.__name__ not in drawn] == []


@pytest.mark.parametrize("class_", tree(), ids=lambda class_: class_.__name__)
def test_the_drawing_says_the_same_as_the_class(class_: type[KubeError]) -> None:
    assert class_.whose in get_args(errors.Whose)
    if class_ in {KubeError, ApiError} or not of_the_room(class_):
        return
    lines = [line for line in inspect.cleandoc(errors.__doc__ or "").splitlines() if f"── {class_.__name__} " in line]
    assert len(lines) == 1
    assert lines[0].endswith(class_.whose)
    assert ("retryable" in lines[0]) == class_.retryable


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (409, "Conflict", errors.ConflictError),
        (409, None, errors.ConflictError),
        (410, "Expired", errors.GoneError),
        (410, "Gone", errors.GoneError),
        (500, "ServerTimeout", errors.ServerTimeoutError),
        (500, "InternalError", errors.InternalServerError),
        (507, "", errors.InternalServerError),
        (502, "", errors.UnavailableError),
        (418, "Teapot", ApiError),
        (404, "SomethingNew", errors.NotFoundError),
    ],
)
def test_reason_decides_before_code(code: int, reason: str | None, expected: type[ApiError]) -> None:
    assert error_class(code, reason) is expected


@pytest.mark.parametrize("class_", [class_ for class_ in tree(ApiError) if class_ is not ApiError])
def test_an_api_error_of_a_class_maps_back_to_it(class_: type[ApiError]) -> None:
    error = class_("why")
    assert error_class(error.code, error.reason) is class_
    assert str(error) == f"{error.code} {error.reason}: why"


def test_an_api_error_without_a_message_still_says_what_it_is() -> None:
    assert str(errors.GoneError()) == "410 Expired"
