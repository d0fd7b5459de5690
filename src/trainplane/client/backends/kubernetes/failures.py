"""What an API server says, as errors of the SDK: the server's own words, and what to do."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.client import errors
from trainplane.kube import errors as kube

if TYPE_CHECKING:
    from collections.abc import Iterator

_RBAC: Final = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"')
_DENIED: Final = re.compile(r'^admission webhook "[^"]+" denied the request: ')
_NO_WEBHOOK: Final = re.compile(r'failed calling webhook "(?P<name>[^"]{1,253})"')
_NO_SUCH_RESOURCE: Final = re.compile(r"the server could not find the requested resource|404 page not found")


@contextlib.contextmanager
def translated(what: str, *, missing: str | None = None) -> Iterator[None]:
    """Raise the SDK's errors within the block in place of the API server's.

    Args:
        what: what is done, such as `TrainJob a cannot be deleted`; messages begin with it.
        missing: what to say where the object is not there.
    """
    try:
        yield
    except kube.KubeError as error:
        raise translate(error, what, missing=missing) from error


def translate(error: kube.KubeError, what: str, *, missing: str | None = None) -> errors.TrainplaneError:
    """Return the SDK's error for one of the API server's."""
    if isinstance(error, kube.ApiError):
        return _answered(error, what, missing)
    if isinstance(error, kube.ConfigError | kube.HandshakeError):
        return errors.InvalidError(f"{what}: {error}")
    if isinstance(error, kube.TransportError | kube.StreamError):
        return errors.UnreachableError(f"{what}: the cluster does not answer: {error}")
    return errors.BrokenBackendError(f"{what}: {error}")


def is_unknown_resource(error: kube.KubeError) -> bool:
    """Return whether the server does not serve that kind of object at all, rather than not this one."""
    return isinstance(error, kube.NotFoundError) and bool(_NO_SUCH_RESOURCE.search(error.message))


def words_of(error: kube.ApiError) -> str:
    """Return what the server said, without who in it said so."""
    return _DENIED.sub("", error.message) or f"{error.code} {error.reason}"


def _not_allowed(error: kube.ApiError) -> str | None:
    """Return why the caller may not; None where that is not why it was refused: admission and quota answer 403, too."""
    if isinstance(error, kube.UnauthorizedError):
        return "the cluster does not accept your credentials: log in again"
    denied = denied_right(error)
    return f"you may not {denied} here: ask an admin for a role that allows it" if denied else None


def denied_right(error: kube.ApiError) -> str | None:
    """Return the verb and the resource that the cluster's roles do not allow, if that is why it refused."""
    rule = _RBAC.search(error.message) if isinstance(error, kube.ForbiddenError) else None
    return f"{rule['verb']} {rule['resource']}" if rule else None


def silent_webhook(error: kube.ApiError) -> str | None:
    """Return the webhook that the API server could not ask, if that is why it refused."""
    found = _NO_WEBHOOK.search(error.message)
    return found["name"] if found else None


def _does_not_answer(webhook: str) -> str:
    """Return what to do about a webhook that the API server cannot ask; ours are the operator's."""
    if not webhook.endswith(f".{names.GROUP}"):
        return f"webhook {webhook} of the cluster does not answer: try again, or ask the admin who installed it"
    return (
        "the operator does not answer, and nothing is accepted without it: try again in a minute; if that does not "
        "help, ask an admin to look at its pods. Jobs that run go on meanwhile"
    )


def _answered(error: kube.ApiError, what: str, missing: str | None) -> errors.TrainplaneError:
    words = words_of(error)
    if is_unknown_resource(error):
        return errors.UnsupportedError(
            f"{what}: this cluster does not know the kind: the trainer's CRDs are not installed. Ask its admin, or run "
            "on this machine with LocalProcessBackendConfig or ContainerBackendConfig"
        )
    if isinstance(error, kube.NotFoundError):
        return errors.NotFoundError(missing or f"{what}: {words}")
    if refusal := _not_allowed(error):
        return errors.ForbiddenError(f"{what}: {refusal} ({words})")
    if isinstance(error, kube.AlreadyExistsError):
        return errors.RefusedError(f"{what}: there is one of that name already: choose another, or delete it ({words})")
    away = silent_webhook(error)
    if away or (error.retryable and not isinstance(error, kube.ConflictError)):
        why = _does_not_answer(away) if away else f"the cluster cannot do that now: {words}"
        return errors.UnreachableError(f"{what}: {why}")
    return errors.RefusedError(f"{what}: {words}")
