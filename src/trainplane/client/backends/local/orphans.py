"""What is done about a job whose supervisor is gone: nothing of it runs on, and all who look find out why.

A supervisor that is killed leaves a parent behind that does it at once (`launching`). Where both were killed, or the
machine was, the next client that looks does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.client.backends.local import events, podstatus
from trainplane.client.backends.local.jobset_policy import SUPERVISOR_ENDED, failed_by
from trainplane.client.backends.local.moments import now, stamp
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.lifecycle.events import ended
from trainplane.lifecycle.status import JobSetStatus, observe

if TYPE_CHECKING:
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.backends.local.runner import Runner

_ENDED: Final = (
    "the job's supervisor ended before the job was over, and its processes were ended: submit the job again; {} may "
    "tell why"
)


def end(folder: JobFolder, runner: Runner) -> None:
    """End the containers that a supervisor left, and give back what it held beside them."""
    runner.end((folder.read("records") or {}).values())


def bury(folder: JobFolder, runner: Runner) -> None:
    """Write that a job failed whose supervisor is gone, and end what it left. The caller knows that it is gone."""
    with folder.locked():
        job = folder.read_job()
        if job is None or is_finished(conditions_of(job)):
            return
        end(folder, runner)
        moment, message = now(), _ENDED.format(folder.path / "supervisor.log")
        for pod in folder.read_pods():
            if pod["status"]["phase"] in {"Pending", "Running"}:
                podstatus.set_phase(pod, podstatus.FAILED, stamp(moment), SUPERVISOR_ENDED, message)
                for entry in pod["status"].get(podstatus.CONTAINERS) or ():
                    entry.update(state={}, ready=False)
                folder.write(f"pods/{pod['metadata']['name']}", pod)
        wanted = document.view(job, TrainJob)
        failed = failed_by(SUPERVISOR_ENDED, message)
        jobs = [msgspec.structs.replace(entry, active=0, ready=0) for entry in wanted.status.jobs_status]
        after = observe(wanted, JobSetStatus([failed], jobs), moment)
        folder.append_event(events.event(ended(failed), job, len(folder.read_events()) + 1, moment))
        folder.write("status", document.to_tree(after))
        folder.touch()
