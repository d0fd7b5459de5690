"""Each refusal of an API server as an error of the SDK, with the server's words in it."""

from __future__ import annotations

import pytest

from trainplane.client import errors
from trainplane.client.backends.kubernetes.failures import is_unknown_resource, translate, translated
from trainplane.kube import errors as kube

RBAC = 'trainjobs.trainer.kubeflow.org is forbidden: User "ana" cannot create resource "trainjobs" in API group "x"'
DENIED = 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: no'

_CALL = (
    'Internal error occurred: failed calling webhook "{}": failed to call webhook: Post "https://x.svc:443": refused'
)
DOWN, OTHER = _CALL.format("validator.trainjob.trainer.kubeflow.org"), _CALL.format("policy.example.com")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (kube.ForbiddenError(RBAC), errors.ForbiddenError, ["you may not create trainjobs", 'User "ana"']),
        (kube.ForbiddenError("exceeded quota: gold"), errors.RefusedError, ["exceeded quota: gold"]),
        (kube.ForbiddenError(DENIED), errors.RefusedError, ["it failed: spec.runtimeRef: no"]),
        (kube.UnauthorizedError("Unauthorized"), errors.ForbiddenError, ["log in again"]),
        (kube.InvalidError("spec.trainer: wrong"), errors.RefusedError, ["spec.trainer: wrong"]),
        (kube.BadRequestError("what?"), errors.RefusedError, ["what?"]),
        (kube.AlreadyExistsError("a exists"), errors.RefusedError, ["choose another", "a exists"]),
        (kube.ConflictError("newer"), errors.RefusedError, ["newer"]),
        (kube.TooLargeError("big"), errors.RefusedError, ["big"]),
        (kube.NotFoundError("a not found"), errors.NotFoundError, ["it is not there"]),
        (
            kube.NotFoundError("the server could not find the requested resource"),
            errors.UnsupportedError,
            ["CRDs are not installed", "LocalProcessBackendConfig"],
        ),
        (kube.TooManyRequestsError("slow down"), errors.UnreachableError, ["slow down"]),
        (kube.InternalServerError("failed calling webhook"), errors.UnreachableError, ["failed calling webhook"]),
        (kube.InternalServerError(DOWN), errors.UnreachableError, ["the operator does not answer", "try again"]),
        (kube.InternalServerError(OTHER), errors.UnreachableError, ["webhook policy.example.com of the cluster"]),
        (kube.UnavailableError(), errors.UnreachableError, ["503"]),
        (kube.ConnectError("refused"), errors.UnreachableError, ["does not answer", "refused"]),
        (kube.StreamError("cut"), errors.UnreachableError, ["cut"]),
        (kube.ConfigError("no kubeconfig"), errors.InvalidError, ["no kubeconfig"]),
        (kube.HandshakeError("not trusted"), errors.InvalidError, ["not trusted"]),
        (kube.DecodeError("no JSON"), errors.BrokenBackendError, ["no JSON"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_errors(error: kube.KubeError, kind: type[errors.TrainplaneError], words: list[str]) -> None:
    found = translate(error, "it failed", missing="it is not there")
    assert type(found) is kind
    for word in words:
        assert word in str(found)


def test_whoever_may_try_again_is_told_so() -> None:
    assert translate(kube.ConnectError("refused"), "x").retryable
    assert not translate(kube.InvalidError("wrong"), "x").retryable


def test_the_block_raises_and_keeps_the_cause() -> None:
    with pytest.raises(errors.RefusedError) as raised, translated("x"):
        raise kube.InvalidError("wrong")
    assert isinstance(raised.value.__cause__, kube.InvalidError)


def test_an_object_that_is_missing_is_no_missing_kind() -> None:
    assert is_unknown_resource(kube.NotFoundError("404 page not found"))
    assert not is_unknown_resource(kube.NotFoundError('trainjobs "a" not found'))


def test_a_webhook_that_is_away_is_not_quoted() -> None:
    assert "Post" not in str(translate(kube.InternalServerError(DOWN), "it failed"))
