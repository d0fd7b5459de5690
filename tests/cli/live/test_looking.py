"""The commands that look, under a tenant's own rights, on a real cluster with real pods."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.engines import binary
from lab.processes import wait_for
from tests.cli.tenant import PATIENCE, SCRIPTS, Tenant, tenant_of
from tests.e2e.shell import WAITING, failing
from tests.sdk.kubernetes.stage import runtime, train_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

PROGRAM = f"""
echo rank $JOB_COMPLETION_INDEX begins
if [ "$JOB_COMPLETION_INDEX" = 1 ]; then {WAITING}; {failing("no more")}; fi
sleep 1
"""


@pytest.fixture(scope="module")
def tenant(cluster: Cluster) -> Iterator[Tenant]:
    """Return a tenant with a job of two nodes, one of which failed."""
    with tenant_of(cluster) as tenant:
        tenant.apply(runtime("shell", PROGRAM), train_job("mnist", trainer={"numNodes": 2}))
        tenant.apply(train_job("held", suspend=True))
        tenant.pod("mnist", 0, "Succeeded")  # a pod that still runs as another fails is deleted, and its log with it
        tenant.let_go("mnist", 1)
        wait_failed(tenant, "mnist")
        yield tenant


def wait_failed(tenant: Tenant, job: str) -> None:
    """Wait until a TrainJob has failed."""
    words = ("--for=condition=Failed", f"--namespace={tenant.namespace}", f"--timeout={PATIENCE}s")
    tenant.cluster.kubectl("wait", f"trainjob/{job}", *words)


def test_list_and_get_show_where_jobs_stand(tenant: Tenant) -> None:
    listed = {line.split()[0]: line.split() for line in tenant.run("list").splitlines()[1:]}
    assert (listed["mnist"][1], listed["held"][1]) == ("Failed", "Suspended")
    assert tenant.tree("get", "mnist", "-o", "json")["spec"]["trainer"]["numNodes"] == 2
    told = tenant.run("get", "mnist", code=1)
    assert told.startswith("mnist  Failed")
    assert "exit code 3" in told


def test_logs_events_and_runtimes_of_the_tenant(tenant: Tenant) -> None:
    assert sorted(tenant.run("logs", "mnist").splitlines()) == [
        "[node-0] rank 0 begins",
        "[node-1] no more",
        "[node-1] rank 1 begins",
    ]
    assert tenant.run("logs", "mnist", "--node", "0", "--since", "1h", "--follow") == "rank 0 begins\n"
    wait_for("news of the JobSet", lambda: "JobSet" in tenant.run("events", "mnist"), seconds=PATIENCE)
    assert [line.split()[0] for line in tenant.run("runtimes").splitlines()[1:]] == ["shell"]
    assert "held" in tenant.run("queue")


def test_a_log_that_went_with_its_pod_is_missed_aloud(tenant: Tenant) -> None:
    """Node 0 still runs as node 1 fails: its pod is deleted, and people are told why they see nothing of it."""
    tenant.apply(runtime("waits", f"echo begins; {WAITING}; exit 3"))
    tenant.apply(train_job("torn", "waits", trainer={"numNodes": 2}))
    pod = tenant.pod("torn", 0)
    tenant.let_go("torn", 1)
    wait_failed(tenant, "torn")
    tenant.cluster.kubectl("wait", pod, "--for=delete", f"--namespace={tenant.namespace}", f"--timeout={PATIENCE}s")
    done = tenant.start("logs", "torn")
    assert (done.returncode, done.stdout) == (0, "[node-1] begins\n")
    assert done.stderr.startswith("trainplane: no log of node-0: without a pod there is none.")


def test_what_a_tenant_may_not_is_told_in_a_line(tenant: Tenant) -> None:
    done = tenant.start("list", "-A")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "you may not list trainjobs here: ask an admin for a role that allows it" in done.stderr


def test_kubectl_has_it_as_a_plugin(tenant: Tenant) -> None:
    path = {"PATH": f"{SCRIPTS}:{Path(binary('kubectl')).parent}:/usr/bin:/bin"}
    words = [binary("kubectl"), "trainjob", "list", "-o", "name"]
    done = subprocess.run(words, capture_output=True, text=True, env=tenant.environment(**path), check=True)
    assert "trainjob.trainer.kubeflow.org/mnist\n" in done.stdout
    words = [binary("kubectl"), "trainjob", "fleet", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, env=tenant.environment(**path), check=True)
    assert done.stdout.startswith("Usage: kubectl trainjob fleet COMMAND")


def test_a_shell_completes_names_of_jobs(tenant: Tenant, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(tenant.run("completion", "bash"))
    program = (
        f"export PATH={SCRIPTS}:$PATH; . {script}; COMP_WORDS=(trainplane logs m); COMP_CWORD=2; _trainplane; "
        'echo "${COMPREPLY[@]}"'
    )

    def complete() -> bool:
        """Return whether the names came in the two seconds that a completion has; on a busy machine they may not."""
        words = ["bash", "-c", program]
        done = subprocess.run(words, capture_output=True, text=True, env=tenant.environment(), check=True)
        assert done.stdout in ("mnist\n", "\n")
        return done.stdout == "mnist\n"

    wait_for("names of TrainJobs", complete, seconds=120)
