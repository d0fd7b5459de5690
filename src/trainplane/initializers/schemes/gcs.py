"""`gs://bucket/path`: Google's store.

Credentials are a service account's key (GOOGLE_SERVICE_ACCOUNT_KEY, or a file named by GOOGLE_APPLICATION_CREDENTIALS),
else the pod's workload identity; with ANONYMOUS=true none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from obstore.store import GCSStore

from trainplane.initializers.schemes.objects import Bucket, given, place, settings
from trainplane.initializers.schemes.uploads import Upload

if TYPE_CHECKING:
    from trainplane.initializers.destination import Destination
    from trainplane.initializers.request import Request
    from trainplane.initializers.source import Source


def _bucket(request: Request) -> Bucket:
    """Return what a URI names, with the credentials of the environment."""
    bucket, prefix = place(request)
    config: dict[str, Any] = given(
        request.env,
        service_account_key="GOOGLE_SERVICE_ACCOUNT_KEY",
        application_credentials="GOOGLE_APPLICATION_CREDENTIALS",
        base_url="ENDPOINT",
    )
    return Bucket(GCSStore(bucket, **settings(request, config)), f"gs://{bucket}", prefix)


def open_source(request: Request) -> Source:
    """Return what is read."""
    return _bucket(request)


def open_destination(request: Request) -> Destination:
    """Return what is written to."""
    return Upload(_bucket(request), request.limits.parallel)
