"""Output as the operator sees it: a TrainJob whose JobSet is complete ends with what its sender said.

The sender's word stands in the pod that was first of the training. A JobSet is complete after its pods have ended, so
if the mirror of pods does not show that word yet, the API server has it; and if it has not, there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api.meta import is_true
from trainplane.lifecycle.conditions import is_finished
from trainplane.lifecycle.output import conclude, read_end
from trainplane.operator.pods import SeenPod
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.trainjob import TrainJob, TrainJobStatus
    from trainplane.kube.client import Client
    from trainplane.operator.stores import SeenJobSet


@dataclass(frozen=True, slots=True)
class Outputs:
    """Says how TrainJobs with an output end."""

    client: Client

    async def end(
        self, job: TrainJob, after: TrainJobStatus, jobset: SeenJobSet | None, pods: Iterable[SeenPod], now: datetime
    ) -> TrainJobStatus:
        """Return the status with what became of the output, if this is the moment at which the TrainJob ends well.

        A JobSet that was made without a sender, by another release or without the annotation, sends nothing.
        """
        if jobset is None or not jobset.sender or is_finished(job.status.conditions):
            return after
        if not is_true(after.conditions, names.COMPLETE):
            return after
        said = _word(pods, jobset)
        if said is None:
            said = _word(await self._live(jobset), jobset)
        uri = job.metadata.annotations.get(names.ANNOTATION_OUTPUT, "")
        return conclude(after, read_end(said), uri, now)

    async def _live(self, jobset: SeenJobSet) -> list[SeenPod]:
        labels = {names.LABEL_JOBSET_NAME: jobset.meta.name, names.LABEL_JOBSET_UID: jobset.meta.uid}
        found = await self.client.list_all(PODS, jobset.meta.namespace, labels=labels, type_=SeenPod)
        return [pod for pod in found if pod.attempt == jobset.status.restarts]


def _word(pods: Iterable[SeenPod], jobset: SeenJobSet) -> str | None:
    """Return what the sender of the first pod said at its end; None if that is not to be seen."""
    firsts = (pod for pod in pods if pod.step == jobset.sender and pod.place.completion_index == 0 and pod.is_done)
    return next((pod.output for pod in firsts if pod.output is not None), None)
