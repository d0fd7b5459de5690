"""`watch` and `top` on a real cluster, in a real terminal, under a tenant's rights, with pods that report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests.cli.live.tmux import terminal
from tests.cli.tenant import PATIENCE, SCRIPTS
from tests.e2e.shell import WAITING
from tests.sdk.kubernetes.stage import runtime, train_job

if TYPE_CHECKING:
    from tests.cli.tenant import Tenant

REPORT = """
import json, os, ssl, urllib.request
status = {"progressPercentage": 40, "estimatedRemainingSeconds": 90, "lastUpdatedTime": "2026-01-01T00:00:00Z",
          "metrics": [{"name": "loss", "value": "0.25"}, {"name": "[red]evil", "value": "NaN"}]}
headers = {"Authorization": "Bearer " + open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read().strip()}
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
body = json.dumps({"trainerStatus": status}).encode()
request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], body, headers)
print("reported", urllib.request.urlopen(request, context=context, timeout=60).status)
"""
PROGRAM = f"""
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then python3 -c {shlex.quote(REPORT)}; fi
printf '\\033[2Jrank %s waits\\n' "$JOB_COMPLETION_INDEX"
{WAITING}
"""


@pytest.fixture
def training(tenant: Tenant) -> str:
    """Return a TrainJob of two nodes whose first reports once; both wait to be told to end."""
    tenant.apply(runtime("loop", PROGRAM), train_job("loop", "loop", trainer={"numNodes": 2}))
    return "loop"


def test_a_job_is_watched_left_and_watched_to_its_end(tenant: Tenant, training: str) -> None:
    with terminal() as screen:
        screen.begin([str(SCRIPTS / "trainplane"), "watch"], tenant.environment(), 80, 24)
        small = screen.until(
            "■ Running", "40 %, about 90 s left", "■ 2 running", "loss  ", "0.25", "rank 1 waits", rows=24
        )
        assert "\\x1b[2Jrank 1 waits" in small, "what a pod prints steers no terminal"
        assert "[red]evil  NaN" in small
        rows = small.rstrip("\n").split("\n")
        assert rows[0].startswith("loop")
        assert (len(rows), rows[-1].rstrip()) == (24, "Ctrl-C leaves; the job goes on")
        assert max(map(len, rows)) <= 80

        screen.resize(120, 40)
        large = screen.until("loop", "rank 0 waits", rows=40)
        assert large.rstrip().endswith("Ctrl-C leaves; the job goes on")

        screen.press("C-c")
        left = screen.until("ended with 130")
        assert "TrainJob loop goes on. Come back with: trainplane watch loop" in left

    with tenant.begin("watch", training) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        for node in range(2):
            tenant.let_go(training, node)
        rest = watching.stdout.read()
        assert watching.wait(PATIENCE) == 0
    assert "node-0: Running" in first + rest
    assert "TrainJob loop: Complete" in rest
    assert "\x1b" not in first + rest
    assert tenant.start("watch", training).returncode == 0, "of a job that is over the end is told"


def test_the_fleet_is_seen_as_far_as_rights_reach(tenant: Tenant, training: str) -> None:
    shown = tenant.run("top", "--once")
    assert f"namespace {tenant.namespace}" in shown
    assert "you may not list TrainJobs of all namespaces" in shown
    assert f"{tenant.namespace}/{training}" in shown or "Running" in shown
    whole = tenant.run("top", "--once", KUBECONFIG=str(tenant.cluster.kubeconfig))
    assert "all namespaces" in whole
    assert "Kueue is not installed here" in whole
