"""`az://container/path`: Azure's blobs of the account AZURE_STORAGE_ACCOUNT_NAME.

Credentials are a key (AZURE_STORAGE_ACCOUNT_KEY), a SAS (AZURE_STORAGE_SAS_TOKEN) or a client's secret, else the pod's
workload identity (AZURE_FEDERATED_TOKEN_FILE); with ANONYMOUS=true none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from obstore.store import AzureStore

from trainplane.initializers.errors import InvalidError
from trainplane.initializers.schemes.objects import Bucket, given, place, settings
from trainplane.initializers.schemes.uploads import Upload

if TYPE_CHECKING:
    from trainplane.initializers.destination import Destination
    from trainplane.initializers.request import Request
    from trainplane.initializers.source import Source


def _bucket(request: Request) -> Bucket:
    """Return what a URI names, with the credentials of the environment."""
    container, prefix = place(request)
    if "AZURE_STORAGE_ACCOUNT_NAME" not in request.env:
        raise InvalidError("AZURE_STORAGE_ACCOUNT_NAME is not set", "set it in the step's environment or in its Secret")
    config: dict[str, Any] = given(
        request.env,
        account_name="AZURE_STORAGE_ACCOUNT_NAME",
        account_key="AZURE_STORAGE_ACCOUNT_KEY",
        sas_key="AZURE_STORAGE_SAS_TOKEN",
        tenant_id="AZURE_TENANT_ID",
        client_id="AZURE_CLIENT_ID",
        client_secret="AZURE_CLIENT_SECRET",  # noqa: S106 a variable's name
        federated_token_file="AZURE_FEDERATED_TOKEN_FILE",  # noqa: S106 a variable's name
        authority_host="AZURE_AUTHORITY_HOST",
        endpoint="ENDPOINT",
    )
    return Bucket(AzureStore(container, **settings(request, config)), f"az://{container}", prefix)


def open_source(request: Request) -> Source:
    """Return what is read."""
    return _bucket(request)


def open_destination(request: Request) -> Destination:
    """Return what is written to."""
    return Upload(_bucket(request), request.limits.parallel)
