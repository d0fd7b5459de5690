from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from tests.unit.render.objects import (
    PIPELINE,
    Runtime,
    container_of,
    in_container,
    in_pod,
    job,
    origin,
    pods_of,
    render,
    replicated_job,
    runtime,
    values_of,
)
from trainplane.api.tree import get
from trainplane.render.errors import PluginRefusedError
from trainplane.render.plugins.mpi import make_keys

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.pipeline import Rendering

ANNOTATION = "trainer.kubeflow.org/mpi-implementation"


def workers(**pod: Any) -> Tree:
    return replicated_job("node", **pod)


def launcher(**pod: Any) -> Tree:
    return replicated_job("launcher", "trainer", **pod)


def mpi(*jobs: Tree, nodes: int = 1, implementation: str = "", **policy: Any) -> Runtime:
    have = runtime(*(jobs or (workers(), launcher())), policy={"numNodes": nodes, "mpi": policy}, name="mpi")
    return have.put("metadata", "annotations", value={ANNOTATION: implementation}) if implementation else have


def files(rendering: Rendering) -> dict[str, str]:
    found: dict[str, str] = rendering.objects[0].tree["data"]
    return found


def volume(rendering: Rendering, name: str, job_name: str) -> Tree:
    found: Tree = get(rendering.jobset.tree, *in_pod(job_name, "volumes", ("name", name)))
    return found


class TestNodes:
    def test_the_trainjob_says_how_many(self) -> None:
        rendering = render(job(trainer={"numNodes": 2, "numProcPerNode": 8}), mpi())
        assert pods_of(rendering) == (2, 2)
        assert pods_of(rendering, "launcher") == (1, 1)
        assert files(rendering)["hostfile"] == "job-node-0-0.job slots=8\njob-node-0-1.job slots=8\n"

    def test_a_launcher_that_trains_is_one_of_them(self) -> None:
        rendering = render(job(trainer={"numNodes": 3}), mpi(runLauncherAsNode=True))
        assert pods_of(rendering) == (2, 2)
        hosts = [line.split()[0] for line in files(rendering)["hostfile"].splitlines()]
        assert hosts == ["job-node-0-0.job", "job-node-0-1.job", "job-launcher-0-0.job"]

    def test_without_a_word_the_runtime_says_how_many(self) -> None:
        many = workers()
        many["template"]["spec"]["parallelism"] = 3
        assert pods_of(render(job(), mpi(many, launcher()))) == (3, 3)

    def test_the_subdomain_is_in_the_addresses(self) -> None:
        have = mpi().put("spec", "template", "spec", "network", value={"subdomain": "net"})
        assert files(render(job(), have))["hostfile"] == "job-node-0-0.net slots=1\n"

    def test_a_runtime_that_says_one_process_means_one_for_each_gpu(self) -> None:
        gpus = {"limits": {"nvidia.com/gpu": "4"}}
        rich = workers(containers=[{"name": "node", "image": "mpi", "resources": gpus}])
        assert " slots=4" in files(render(job(), mpi(rich, launcher())))["hostfile"]
        assert " slots=2" in files(render(job(), mpi(rich, launcher(), numProcPerNode=2)))["hostfile"]
        said = job(trainer={"numProcPerNode": 1})
        assert " slots=1" in files(render(said, mpi(rich, launcher())))["hostfile"]

    def test_gpus_of_the_trainjob_count_where_the_launcher_trains(self) -> None:
        said = job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}})
        assert " slots=8" in files(render(said, mpi(runLauncherAsNode=True)))["hostfile"]


class TestVariables:
    def test_both_generations_of_openmpi_are_told(self) -> None:
        values = values_of(container_of(render(job(trainer={"numProcPerNode": 4}), mpi()), job="launcher"))
        ssh = "-F /etc/mpi/ssh_config -o ConnectionAttempts=10"
        assert values == {
            "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_set_default_slots": "4",
            "OMPI_MCA_plm_rsh_args": ssh,
            "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
            "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
            "PRTE_MCA_prte_do_not_resolve": "false",
            "PRTE_MCA_plm_ssh_args": ssh,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }

    def test_nodes_are_told_by_the_launcher(self) -> None:
        assert "env" not in container_of(render(job(), mpi()))

    def test_a_plain_user_needs_no_leave(self) -> None:
        plain = launcher(securityContext={"runAsUser": 1000})
        assert "OMPI_ALLOW_RUN_AS_ROOT" not in values_of(
            container_of(render(job(), mpi(workers(), plain)), job="launcher")
        )

    @pytest.mark.parametrize(
        ("implementation", "variable"), [("Intel", "I_MPI_HYDRA_HOST_FILE"), ("MPICH", "HYDRA_HOST_FILE")]
    )
    def test_other_implementations_are_named_by_an_annotation(self, implementation: str, variable: str) -> None:
        rendering = render(job(trainer={"numProcPerNode": 2}), mpi(implementation=implementation))
        values = values_of(container_of(rendering, job="launcher"))
        assert values[variable] == "/etc/mpi/hostfile"
        assert not any(name.startswith("OMPI") for name in values)
        assert files(rendering)["hostfile"] == "job-node-0-0.job:2\n"

    @pytest.mark.parametrize(("written", "meant"), [("Intel", "Intel"), ("IntelMPI", "Intel"), ("MPICH", "MPICH")])
    @pytest.mark.parametrize("annotation", ["", "OpenMPI", "MPICH", "Intel"])
    def test_a_runtime_that_admission_has_not_seen_may_name_them_in_its_policy(
        self, written: str, meant: str, annotation: str
    ) -> None:
        rendered = render(job(), mpi(implementation=annotation, mpiImplementation=written))
        assert rendered.jobset.tree == render(job(), mpi(implementation=meant)).jobset.tree

    @pytest.mark.parametrize(("implementation", "variable"), [("Intel", "I_MPI_HYDRA_IFACE"), ("MPICH", "HYDRA_IFACE")])
    def test_nodes_find_back_to_a_launcher_whose_name_they_cannot_resolve(
        self, implementation: str, variable: str
    ) -> None:
        def values(*jobs: Tree, **trainer: Any) -> dict[str, Any]:
            rendering = render(job(trainer=trainer), mpi(*jobs, implementation=implementation))
            return values_of(container_of(rendering, job="launcher"))

        assert values()[variable] == "eth0"
        assert values(env=[{"name": variable, "value": "net1"}])[variable] == "net1"
        assert variable not in values(workers(), launcher(hostNetwork=True))

    @pytest.mark.parametrize("have", [mpi(implementation="LAM"), mpi(mpiImplementation="")])
    def test_an_implementation_that_nobody_knows_is_refused(self, have: Runtime) -> None:
        with pytest.raises(PluginRefusedError, match="OpenMPI, Intel, MPICH"):
            render(job(), have)

    def test_what_is_not_reserved_may_be_said_otherwise(self) -> None:
        said = job(trainer={"env": [{"name": "PRTE_MCA_plm_ssh_args", "value": "-v"}]})
        values = values_of(container_of(render(said, mpi()), job="launcher"))
        assert values["PRTE_MCA_plm_ssh_args"] == "-v"

    def test_the_runtime_may_say_what_is_not_reserved(self) -> None:
        own = {"PRTE_MCA_plm_ssh_args": "-p 2222", "OMPI_ALLOW_RUN_AS_ROOT": "0", "OMPI_MCA_plm_rsh_args": "-p 2222"}
        env = [{"name": name, "value": value} for name, value in own.items()]
        have = mpi(workers(), launcher(containers=[{"name": "node", "image": "mpi", "env": env}]))
        values = values_of(container_of(render(job(), have), job="launcher"))
        assert (values["PRTE_MCA_plm_ssh_args"], values["OMPI_ALLOW_RUN_AS_ROOT"]) == ("-p 2222", "0")
        assert values["OMPI_MCA_plm_rsh_args"] == "-F /etc/mpi/ssh_config -o ConnectionAttempts=10"

    def test_origin(self) -> None:
        path = in_container("env", ("name", "OMPI_MCA_plm_rsh_args"), job="launcher")
        assert origin(render(job(), mpi()).jobset, *path) == "plugin MPI"


class TestTrust:
    @pytest.mark.parametrize("where", ["node", "launcher"])
    def test_keys_lie_where_the_runtime_wants_them(self, where: str) -> None:
        rendering = render(job(), mpi(sshAuthMountPath="/home/mpiuser/.ssh"))
        assert volume(rendering, "mpi-ssh-auth", where)["secret"] == {
            "secretName": "job-mpi-ssh-auth",
            "defaultMode": 0o400,
            "items": [
                {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o400},
                {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
                {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
            ],
        }
        mounts = {mount["mountPath"] for mount in container_of(rendering, job=where)["volumeMounts"]}
        assert {"/home/mpiuser/.ssh", "/etc/mpi"} <= mounts

    @pytest.mark.parametrize(
        ("context", "mode"),
        [
            ({}, 0o400),
            ({"runAsUser": 0}, 0o400),
            ({"runAsUser": 1000, "fsGroup": 1000}, 0o400),
            ({"runAsUser": 1000}, 0o444),
        ],
    )
    def test_ssh_accepts_the_key_whoever_it_runs_as(self, context: Tree, mode: int) -> None:
        rendering = render(job(), mpi(workers(securityContext=context), launcher()))
        assert volume(rendering, "mpi-ssh-auth", "node")["secret"]["items"][0]["mode"] == mode

    def test_the_containers_user_outranks_the_pods(self) -> None:
        plain = {"name": "node", "image": "mpi", "securityContext": {"runAsUser": 1000}}
        rendering = render(job(), mpi(workers(containers=[plain], securityContext={"runAsUser": 0}), launcher()))
        assert volume(rendering, "mpi-ssh-auth", "node")["secret"]["items"][0]["mode"] == 0o444
        assert "UsePAM no" in files(rendering)["sshd_config"]

    def test_nodes_show_the_key_that_the_launcher_knows(self) -> None:
        rendering = render(job(), mpi())
        drop_in = next(
            mount
            for mount in container_of(rendering)["volumeMounts"]
            if mount["mountPath"].startswith("/etc/ssh/sshd_config.d/")
        )
        assert drop_in["subPath"] == "sshd_config"
        assert "HostKey /root/.ssh/id_rsa" in files(rendering)["sshd_config"]
        assert "StrictHostKeyChecking yes" in files(rendering)["ssh_config"]
        assert "/root/.ssh/id_rsa.pub" in files(rendering)["ssh_config"]

    def test_the_images_own_settings_of_ssh_come_first(self) -> None:
        assert files(render(job(), mpi()))["ssh_config"].startswith("Include /etc/ssh/ssh_config\n")

    def test_a_port_named_ssh_is_where_nodes_listen(self) -> None:
        listening = {"name": "node", "image": "mpi", "ports": [{"name": "ssh", "containerPort": 2222}]}
        rendering = render(job(), mpi(workers(containers=[listening]), launcher()))
        assert "  Port 2222\n" in files(rendering)["ssh_config"]
        assert "Port" not in files(render(job(), mpi()))["ssh_config"]

    def test_keys_are_drawn_once_and_kept(self) -> None:
        (kept,) = render(job(), mpi()).kept
        assert (kept.api_version, kept.kind, kept.name) == ("v1", "Secret", "job-mpi-ssh-auth")
        assert kept.make() != kept.make()

    def test_the_pair_fits(self) -> None:
        made = make_keys()
        assert (made["type"], made["immutable"]) == ("kubernetes.io/ssh-auth", True)
        private, public = (base64.b64decode(made["data"][name]) for name in ("ssh-privatekey", "ssh-publickey"))
        assert private.startswith(b"-----BEGIN EC PRIVATE KEY-----")
        assert public.startswith(b"ecdsa-sha2-nistp521 ")
        key = load_pem_private_key(private, None).public_key()
        assert key == load_ssh_public_key(public)

    def test_a_runtime_without_mpi_gets_none_of_it(self) -> None:
        rendering = render(job(), runtime(workers(), launcher()))
        assert rendering.kept == ()
        assert len(rendering.objects) == 1


class TestValidation:
    def test_reserved_variables(self) -> None:
        said = job(trainer={"env": [{"name": "OMPI_MCA_plm_rsh_args", "value": "x"}]})
        (finding,) = PIPELINE.validate(said, None, mpi()).errors
        assert finding.path == "spec.trainer.env"
        assert "OMPI_MCA_plm_rsh_args" in finding.problem

    def test_many_nodes_need_both_jobs(self) -> None:
        have = mpi(launcher(), runLauncherAsNode=True)
        (finding,) = PIPELINE.validate(job(trainer={"numNodes": 2}), None, have).errors
        assert finding.path == "spec.trainer.numNodes"
        assert PIPELINE.validate(job(trainer={"numNodes": 1}), None, have).allowed

    def test_one_node_that_is_two_pods_is_said(self) -> None:
        (warning,) = PIPELINE.validate(job(trainer={"numNodes": 1}), None, mpi(runLauncherAsNode=True)).warnings
        assert "two pods" in warning

    def test_launchers_that_are_taken_for_nodes_are_said(self) -> None:
        (warning,) = PIPELINE.validate(job(), None, mpi(nodes=3)).warnings
        assert "that many launchers" in warning

    @pytest.mark.finding("semantics", 8, "GPUs went to an MPI launcher and to none of its nodes, without a word")
    def test_resources_that_reach_no_node_are_said(self) -> None:
        asked = job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}}})
        (warning,) = PIPELINE.validate(asked, None, mpi()).warnings
        assert warning.startswith("spec.trainer.resourcesPerNode: goes to the launcher and to no node")
        assert PIPELINE.validate(asked, None, mpi(runLauncherAsNode=True)).warnings == ()

    def test_nothing_to_say_of_an_ordinary_job(self) -> None:
        verdict = PIPELINE.validate(job(trainer={"numNodes": 4}), None, mpi(runLauncherAsNode=True))
        assert (verdict.errors, verdict.warnings) == ((), ())
