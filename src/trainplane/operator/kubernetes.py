"""Whether the Kubernetes that the operator runs on is one that it supports: asked once, at the start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from trainplane.kube.errors import ForbiddenError, KubeError
from trainplane.kube.version import is_too_old, oldest
from trainplane.operator.errors import UnsupportedKubernetesError

if TYPE_CHECKING:
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0
"""Until a server that did not answer is asked again; what is wrong with it, the mirrors tell."""


async def insist_on_supported(client: Client, clock: Clock) -> None:
    """Return once the API server has said that it is new enough; raises UnsupportedKubernetesError.

    On one that is too old, half of it would seem to work: a rule that its API server does not know is dropped in
    silence, and with it a guard. Everybody may read `/version`, so this needs no right of the operator's; an admin who
    took that away from everybody is believed.
    """
    while True:
        try:
            said = await client.version()
        except ForbiddenError as refusal:
            log.warning("whether Kubernetes is new enough cannot be seen", extra={"error": str(refusal)})
            return
        except KubeError:
            await clock.sleep(RETRY_SECONDS)
            continue
        version = str(said.get("gitVersion") or "")
        if is_too_old(version):
            raise UnsupportedKubernetesError(version)
        log.info("the API server is supported", extra={"version": version, "oldest": oldest()})
        return
