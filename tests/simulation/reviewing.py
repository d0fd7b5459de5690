"""What a cluster asks while it runs: replicas for reviews of what is stored, and fate for how a pod ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.jobset import attempt_of
from tests.simulation.people import FATE
from trainplane.kube.errors import InternalServerError
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.replica import Replica
    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.testing.storage import Tree


UNREADY = 30.0
"""Virtual seconds after which a process that does not answer gets no more reviews: three probes that failed."""


@dataclass
class Reviews:
    """Asks any replica that is ready, as a Service does."""

    replicas: Sequence[Replica]
    random: Random
    are_down: bool = False
    """Whether nobody can be reached."""

    async def ask(self, path: str, request: AdmissionRequest) -> Any:
        """Return a replica's verdict; raises as the API server does where it gets none."""
        asked = [
            one
            for one in self.replicas
            if one.runs and one.operator is not None and one.operator.manager.ready.is_set() and _is_seen(one)
        ]
        if self.are_down or not asked:
            raise InternalServerError("failed calling webhook: no endpoints available", code=500)
        await asyncio.sleep(self.random.uniform(0.001, 0.02))
        one = self.random.choice(asked)
        if one.operator is None:
            raise InternalServerError("failed calling webhook: connection refused", code=500)
        if one.is_distrusted:
            raise InternalServerError("failed calling webhook: tls: failed to verify certificate: x509", code=500)
        try:
            async with asyncio.timeout(10.0):
                return await one.review(path, request)
        except ConnectionError as error:
            raise InternalServerError(f"failed calling webhook: {error}", code=500) from None
        except TimeoutError:
            raise InternalServerError("failed calling webhook: context deadline exceeded", code=500) from None


def _is_seen(one: Replica) -> bool:
    """Return whether the kubelet takes a replica for ready: it looks now and then, and not at once for stopped."""
    return asyncio.get_running_loop().time() - one.process.stopped_at < UNREADY


@dataclass
class Fates:
    """Says how a pod ends, by what its TrainJob is annotated with."""

    server: ApiServer
    random: Random

    def of(self, pod: Tree) -> tuple[float, int]:
        """Return after how many seconds a pod ends, and with which exit code."""
        labels = pod["metadata"]["labels"]
        key = Key(pod["metadata"]["namespace"], labels["jobset.sigs.k8s.io/jobset-name"])
        job = self.server.find(TRAINJOBS, key)
        told = (job or {"metadata": {}})["metadata"].get("annotations") or {}
        seconds, *codes = map(int, told.get(FATE, "5 0").split())
        attempt = attempt_of(labels)
        code = codes[min(attempt, len(codes) - 1)]
        if labels["batch.kubernetes.io/job-completion-index"] != "0":
            code = 0
        return seconds + self.random.uniform(0, 2), code
