from __future__ import annotations

import base64
import re
import shlex
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.unit.render.objects import (
    PIPELINE,
    Runtime,
    container_of,
    in_container,
    in_pod,
    job,
    node,
    origin,
    pods_of,
    render,
    replicated_job,
    runtime,
)
from trainplane.api.tree import get
from trainplane.render.plugins.flux import _Z85, _z85

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.api.tree import Tree
    from trainplane.render.pipeline import Rendering

BASH = "/bin/bash"
ENTRYPOINT = "/etc/flux-config/entrypoint.sh"


def flux(*jobs: Any, nodes: int = 1, **policy: Any) -> Runtime:
    return runtime(*jobs, policy={"numNodes": nodes, "flux": policy}, name="flux-distributed")


def scripts(rendering: Rendering) -> dict[str, str]:
    found: dict[str, str] = rendering.objects[0].tree["data"]
    return found


def settings(script: str) -> dict[str, str]:
    """Return what is set at a script's top."""
    lines = script.splitlines()[1:]
    head = lines[: next(index for index, line in enumerate(lines) if line.startswith("#"))]
    return dict(shlex.split(line)[0].split("=", 1) for line in head)


class TestPods:
    def test_the_command_is_run_by_flux(self) -> None:
        rendering = render(job(trainer={"command": ["trainjob"], "args": ["trainjob"]}), flux())
        container = container_of(rendering)
        assert container["command"] == [BASH, ENTRYPOINT, "trainjob trainjob"]
        assert "args" not in container
        assert origin(rendering.jobset, *in_container("command")) == "plugin Flux"

    @pytest.mark.parametrize(
        ("command", "args", "line"),
        [
            (["python", "-c", "print('a b')"], None, """python -c 'print('"'"'a b'"'"')'"""),
            (["lmp -v x 2"], None, "lmp -v x 2"),
            (None, ["runtime", "$HOME"], "runtime '$HOME'"),
            (None, None, ""),
        ],
    )
    def test_words_stay_words(self, command: Any, args: Any, line: str) -> None:
        said = {key: value for key, value in (("command", command), ("args", args)) if value}
        assert container_of(render(job(), flux(node(**said))))["command"] == [BASH, ENTRYPOINT, line]

    def test_a_trainjobs_command_replaces_the_runtimes(self) -> None:
        have = flux(node(command=["theirs"], args=["--kept"]))
        container = container_of(render(job(trainer={"command": ["mine", "x"]}), have))
        assert container["command"] == [BASH, ENTRYPOINT, "mine x --kept"]

    def test_flux_comes_by_an_init_container(self) -> None:
        rendering = render(job(trainer={"numNodes": 2}), flux())
        pod = get(rendering.jobset.tree, *in_pod("node"))
        scripts = "job-flux-entrypoint"
        (installer,) = pod["initContainers"]
        assert installer == {
            "name": "flux-installer",
            "image": "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
            "command": [BASH, "/etc/flux-config/init.sh"],
            "volumeMounts": [
                {"name": "flux-install", "mountPath": "/mnt/flux"},
                {"name": scripts, "mountPath": "/etc/flux-config", "readOnly": True},
            ],
        }
        assert pod["volumes"] == [
            {"name": "spack-install", "emptyDir": {}},
            {"name": "flux-install", "emptyDir": {}},
            {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            {"name": "flux-curve", "secret": {"secretName": "job-flux-curve", "defaultMode": 0o400}},
        ]
        assert container_of(rendering)["volumeMounts"] == [
            {"name": "flux-install", "mountPath": "/mnt/flux"},
            {"name": "spack-install", "mountPath": "/opt/software"},
            {"name": scripts, "mountPath": "/etc/flux-config", "readOnly": True},
            {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # writable: it is there to be written to
        ]
        assert pods_of(rendering) == (2, 2)

    def test_what_the_runtime_has_stays(self) -> None:
        pod = {
            "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "initContainers": [{"name": "fetch"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }
        have = get(render(job(), flux(replicated_job("w", "trainer", **pod))).jobset.tree, *in_pod("w"))
        assert have["volumes"][0] == {"name": "data", "emptyDir": {}}
        assert [entry["name"] for entry in have["initContainers"]] == ["fetch", "flux-installer"]
        assert have["containers"][0]["volumeMounts"][0] == {"name": "data", "mountPath": "/data"}

    def test_an_image_for_another_system_is_a_variable(self) -> None:
        rocky = "ghcr.io/converged-computing/flux-view-rocky:tag-9"
        have = flux(node(env=[{"name": "FLUX_VIEW_IMAGE", "value": "of-the-runtime"}]))
        assert get(render(job(), have).jobset.tree, *in_pod("node", "initContainers", 0, "image")) == "of-the-runtime"
        mine = job(trainer={"env": [{"name": "FLUX_VIEW_IMAGE", "value": rocky}]})
        assert get(render(mine, have).jobset.tree, *in_pod("node", "initContainers", 0, "image")) == rocky


class TestScripts:
    def test_they_stand_in_a_configmap(self) -> None:
        config, _ = render(job(), flux()).objects
        assert config.tree["kind"] == "ConfigMap"
        assert config.tree["metadata"]["name"] == "job-flux-entrypoint"
        assert config.tree["metadata"]["ownerReferences"][0]["name"] == "job"
        assert set(config.tree["data"]) == {"init.sh", "entrypoint.sh"}

    @pytest.mark.parametrize("name", ["init.sh", "entrypoint.sh"])
    def test_bash_can_read_them(self, name: str) -> None:
        text = scripts(render(job(), flux()))[name]
        assert text.startswith("#!/bin/bash\n")
        subprocess.run([BASH, "-n"], input=text, text=True, check=True)

    def test_a_broker_is_told_of_all_hosts(self) -> None:
        have = flux(replicated_job("w", "trainer"), nodes=3).put(
            "spec", "template", "spec", "network", value={"subdomain": "net"}
        )
        assert settings(scripts(render(job(), have))["init.sh"]) == {
            "hosts": "job-w-0-[0-2]",
            "device": "eth0",
            "port": "8050",
            "subdomain": "net",
            "queue_policy": "fcfs",
        }

    def test_device_policy_and_port_can_be_set(self) -> None:
        env = [{"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}, {"name": "FLUX_QUEUE_POLICY", "value": "easy"}]
        have = flux(node(env=env)).put("metadata", "annotations", value={"trainer.kubeflow.org/port": "8051"})
        said = settings(scripts(render(job(), have))["init.sh"])
        assert (said["device"], said["queue_policy"], said["port"]) == ("ib0", "easy", "8051")
        assert said["hosts"] == "job-node-0-[0]"

    @pytest.mark.parametrize(
        ("resources", "policy", "trainer", "have", "tasks"),
        [
            (None, {}, {}, "--cores=0", "-N 2 -n 2"),
            (None, {"numProcPerNode": 4}, {}, "--cores=0-3", "-N 2 -n 8"),
            (None, {"numProcPerNode": 4}, {"numProcPerNode": 2}, "--cores=0-1", "-N 2 -n 4"),
            ({"nvidia.com/gpu": 4}, {}, {}, "--cores=0 --gpus=0-3", "-N 2 -n 2 -g 4"),
            ({"nvidia.com/gpu": 4}, {"numProcPerNode": 2}, {}, "--cores=0-1 --gpus=0-3", "-N 2 -n 4 -g 2"),
            ({"amd.com/gpu": 1}, {"numProcPerNode": 2}, {}, "--cores=0-1 --gpus=0", "-N 2 -n 4"),
        ],
    )
    def test_tasks_are_nodes_by_processes_and_gpus_are_shared_out(
        self, resources: Any, policy: Any, trainer: Any, have: str, tasks: str
    ) -> None:
        container = node(resources={"limits": resources}) if resources else node()
        said = settings(scripts(render(job(trainer=trainer), flux(container, nodes=2, **policy)))["entrypoint.sh"])
        assert said == {"lead": "job-node-0-0", "resources": have, "tasks": tasks}

    def test_a_trainjob_without_a_trainer_is_no_accident(self) -> None:
        assert settings(scripts(render(job(), flux(nodes=2)))["entrypoint.sh"])["tasks"] == "-N 2 -n 2"


class Machine:
    """A folder that the scripts take for a container's root, with a `flux` that writes down how it was called."""

    def __init__(self, root: Path, hostname: str = "job-node-0-0") -> None:
        self.root = root
        self.calls = root / "calls"
        self.calls.touch()
        for folder in (
            "bin",
            "curve",
            "opt/views/._view/abc/bin",
            "opt/views/._view/abc/lib/python3.11",
            "opt/software",
        ):
            (root / folder).mkdir(parents=True)
        (root / "opt/software/library.so").write_text("library")
        (root / "opt/views/._view/abc/bin/python3.11").write_text("python")
        (root / "curve/curve.cert").write_text("certificate")
        self._command("hostname", f"echo {hostname}")
        self._command(
            "flux", f'printf "%s\\n" "$(printf "<%s>" "$@")" >> {self.calls}; [ "$1" != R ] || echo RESOURCES'
        )
        self._command("sleep", "exit 0")

    def _command(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self, script: str, *arguments: str) -> None:
        here = re.sub(r"(?<![\w.$-])/(mnt|opt|curve)\b", rf"{self.root}/\1", script)
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin"}
        (self.root / "mnt").mkdir(exist_ok=True)
        done = subprocess.run(
            [BASH, "-c", here, "script", *arguments], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def install(self, rendering: Rendering) -> None:
        self.run(scripts(rendering)["init.sh"])


class TestScriptsRun:
    """On a machine with a Flux that only takes notes."""

    def test_the_first_writes_what_brokers_read(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.install(render(job(), flux(nodes=2)))
        config = tmp_path / "mnt/flux/config"
        assert (config / "etc/flux/system/hostlist").read_text() == "job-node-0-[0-1]\n"
        broker: Tree = tomllib.loads((config / "etc/flux/config/broker.toml").read_text())
        assert broker["bootstrap"] == {
            "curve_cert": f"{config}/etc/curve/curve.cert",
            "default_port": 8050,
            "default_bind": "tcp://eth0:%p",
            "default_connect": "tcp://%h.job:%p",
            "hosts": [{"host": "job-node-0-[0-1]"}],
        }
        assert broker["sched-fluxion-qmanager"] == {"queue-policy": "fcfs"}
        assert broker["resource"]["path"] == f"{config}/etc/flux/system/R"
        assert (tmp_path / "mnt/flux/view/bin/python3.11").read_text() == "python"
        assert (tmp_path / "mnt/flux/software/library.so").read_text() == "library"

    def test_the_lead_runs_the_training_word_for_word(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        rendering = render(job(trainer={"command": ["python", "-c", "print('a  b', $x)"]}), flux(nodes=2))
        machine.install(rendering)
        machine.run(scripts(rendering)["entrypoint.sh"], container_of(rendering)["command"][2])
        encode, broker = machine.calls.read_text().splitlines()
        assert encode == "<R><encode><--hosts=job-node-0-[0-1]><--cores=0>"
        line = shlex.join(["python", "-c", "print('a  b', $x)"])
        assert broker.startswith(f"<broker><--config-path={tmp_path}/mnt/flux/config/etc/flux/config>")
        assert broker.endswith(f"<flux><run><-N><2><-n><2></bin/sh><-c><{line}>")
        config = tmp_path / "mnt/flux/config"
        assert (config / "etc/flux/system/R").read_text() == "RESOURCES\n"
        assert (config / "etc/curve/curve.cert").read_text() == "certificate"
        assert (config / "etc/curve/curve.cert").stat().st_mode & 0o777 == 0o400
        assert (tmp_path / "mnt/flux/view/bin/python3").resolve().name == "python3.11"
        assert "fluxsocket=local://" in (tmp_path / "mnt/flux/flux-view.sh").read_text()

    def test_without_a_command_it_waits_for_people(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        rendering = render(job(), flux())
        machine.install(rendering)
        machine.run(scripts(rendering)["entrypoint.sh"], "")
        assert machine.calls.read_text().splitlines()[1].endswith("<-Slog-stderr-mode=local>")

    def test_a_follower_tries_until_the_lead_is_there(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, hostname="job-node-0-1")
        rendering = render(job(trainer={"command": ["train", "it"]}), flux(nodes=2))
        machine.install(rendering)
        counting = f'echo broker >> {machine.calls}; [ "$1" = R ] || [ "$(grep -c broker {machine.calls})" -ge 4 ]'
        machine._command("flux", counting)
        machine.run(scripts(rendering)["entrypoint.sh"], "train it")
        assert len(machine.calls.read_text().splitlines()) == 4  # R, and three brokers of which the last succeeded


class TestCertificate:
    def make(self) -> str:
        (kept,) = render(job(), flux()).kept
        assert (kept.api_version, kept.kind, kept.name) == ("v1", "Secret", "job-flux-curve")
        content = kept.make()
        assert set(content) == {"data"}
        assert set(content["data"]) == {"curve.cert"}
        return base64.b64decode(content["data"]["curve.cert"]).decode()

    def test_it_is_a_pair_of_keys(self) -> None:
        text = self.make()
        keys = dict(re.findall(r'(public|secret)-key = "(\S{40})"', text))
        secret = X25519PrivateKey.from_private_bytes(unz85(keys["secret"]))
        assert secret.public_key().public_bytes_raw() == unz85(keys["public"])
        assert 'name = "job"' in text

    def test_nobody_can_guess_it(self) -> None:
        assert self.make() != self.make()

    def test_letters_are_those_of_zeromq(self) -> None:
        assert _z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


def unz85(text: str) -> bytes:
    numbers = [text[start : start + 5] for start in range(0, len(text), 5)]
    values = [sum(_Z85.index(letter) * 85 ** (4 - place) for place, letter in enumerate(five)) for five in numbers]
    return b"".join(value.to_bytes(4) for value in values)


class TestValidation:
    def test_the_name_of_its_init_container_is_its_own(self) -> None:
        taken = flux(replicated_job("node", "trainer", initContainers=[{"name": "flux-installer"}]))
        (finding,) = PIPELINE.validate(job(trainer={"numNodes": 1}), None, taken).errors
        assert finding.path == "spec.trainer.initContainers"
        assert "rename it in the runtime" in finding.problem

    @pytest.mark.parametrize("spec", [{}, {"trainer": {"numNodes": 2, "numProcPerNode": 2, "command": ["x"]}}])
    def test_a_good_trainjob(self, spec: Any) -> None:
        verdict = PIPELINE.validate(job(**spec), None, flux())
        assert (verdict.errors, verdict.warnings) == ((), ())

    def test_other_frameworks_get_nothing(self) -> None:
        rendering = render(job(trainer={"command": ["x"]}), runtime())
        assert container_of(rendering)["command"] == ["x"]
        assert (len(rendering.objects), rendering.kept) == (1, ())

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        rendering = render(job(), flux(replicated_job("other")))
        assert (len(rendering.objects), rendering.kept) == (1, ())
