"""The catalogue: failures as users meet them, each made with real pods, and what each ought to be called."""

from __future__ import annotations

import base64
import shlex
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.images import reference as image

Tree = dict[str, Any]
FIRST_RANK: Final = "node-0"
SECOND_RANK: Final = "node-1"
NAMESPACE: Final = "team"
STRICT: Final = "strict"
"""A namespace of restricted pods."""


@dataclass(frozen=True)
class Failure:
    """One failure."""

    name: str
    cause: str
    """The class that it is of."""
    program: str = "sleep 600"
    """What each node runs, in a shell."""
    step: str = FIRST_RANK
    """Whose fault it is; empty if nobody's alone."""
    nodes: int = 1
    ends: bool = True
    """Whether the TrainJob fails; otherwise it waits, or runs on."""
    state: Literal["", "Running"] = ""
    container: Tree = field(default_factory=dict)
    pod: Tree = field(default_factory=dict)
    job: Tree = field(default_factory=dict)
    """Of the Job's spec."""
    labels: Tree = field(default_factory=dict)
    """Of the pods."""
    spec: Tree = field(default_factory=dict)
    """Of the TrainJob."""
    namespace: str = ""
    initializer: str = ""
    """What an initializer runs before."""
    gone: bool = False
    """Whether its pods are removed before it is explained."""
    evicts: bool = False
    """Whether its pods are evicted once they run, as by a drain: the TrainJob restarts, and its status names that."""

    def runtime(self) -> Tree:
        """Return the runtime that it runs on."""
        jobs = [self._job("node", "trainer", self.program, **({"dependsOn": _AFTER} if self.initializer else {}))]
        if self.initializer:
            jobs.insert(0, self._job("dataset-initializer", "dataset-initializer", self.initializer))
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": self.name, "labels": {"trainer.kubeflow.org/framework": "plain"}},
            "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}},
        }

    def _job(self, name: str, ancestor: str, program: str, **others: Any) -> Tree:
        container = {
            "name": name,
            "image": image("python"),
            "imagePullPolicy": "Never",
            "command": ["bash", "-c", program],
            **self.container,
        }
        spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [container], **self.pod}
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}
        template = {"metadata": {"labels": self.labels}, "spec": spec}
        job = {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, **self.job, "template": template}}
        return {"name": name, "template": job, **others}

    def trainjob(self) -> Tree:
        """Return the TrainJob that fails so."""
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": self.name},
            "spec": {
                "runtimeRef": {"name": self.name, "kind": "TrainingRuntime"},
                "trainer": {"numNodes": self.nodes},
                **self.spec,
            },
        }


_AFTER: Final = [{"name": "dataset-initializer", "status": "Complete"}]


def python(code: str) -> str:
    """Return a shell program that runs Python, which knows its rank."""
    head = 'import os, sys, time, socket\nrank = int(os.environ["JOB_COMPLETION_INDEX"])\n'
    return f"exec python3 -uc {shlex.quote(head + code)}"


def _survived(code: str) -> str:
    """Return the same below a shell: the first process of a container cannot kill itself."""
    return python(code).removeprefix("exec ") + "; exit $?"


def _emptied(name: str, **source: Any) -> Tree:
    return {
        "container": {"volumeMounts": [{"name": name, "mountPath": "/data"}]},
        "pod": {"volumes": [{"name": name, **source}]},
    }


_FOREIGN: Final = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, 183, 1) + bytes(100)
"""The beginning of a program for ARM."""
_TLS: Final = """
import ssl, threading
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain("/tls/both.pem")
listening = socket.create_server(("127.0.0.1", 0))
def serve():
    try:
        server.wrap_socket(listening.accept()[0], server_side=True)
    except OSError:
        pass
threading.Thread(target=serve, daemon=True).start()
client = ssl.create_default_context(cafile="/tls/both.pem")
client.wrap_socket(socket.create_connection(listening.getsockname()), server_hostname="data.example")
"""
_WORLD: Final = """
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(1)
class DistStoreError(RuntimeError): pass
DistStoreError.__module__ = "torch.distributed"
try:
    server.accept()
except TimeoutError:
    raise DistStoreError("Timed out after 1 seconds waiting for clients. 1/3 clients joined.") from None
"""
_STEPS: Final = """
for step in range(10**6):
    print(f"step {step}", flush=True)
    time.sleep(0.1 if rank == 0 else 1.5)
"""

FAILURES: Final = (
    # -- the program
    Failure("traceback", "PythonError", python("if rank == 1: {}[1]\ntime.sleep(600)"), SECOND_RANK, nodes=2),
    Failure("traceback-gone", "PythonError", python("int(str(rank) + chr(120))"), gone=True),
    Failure("exit-code", "ExitCode", "[ $JOB_COMPLETION_INDEX = 1 ] && exit 3; sleep 600", SECOND_RANK, nodes=2),
    Failure("module", "MissingModule", python("import flash_attn")),
    Failure("entrypoint", "WrongCommand", container={"command": ["/usr/bin/trian"]}),
    Failure("script", "WrongCommand", "exec python3 /workspace/trian.py"),
    Failure("arguments", "WrongArguments", python('import argparse\nargparse.ArgumentParser().parse_args(["--no"])')),
    Failure("architecture", "WrongArchitecture", container={
        "command": ["/foreign/program"], "volumeMounts": [{"name": "foreign", "mountPath": "/foreign"}],
    }, pod={"volumes": [{"name": "foreign", "configMap": {"name": "foreign", "defaultMode": 0o755}}]}),
    Failure("crash", "NativeCrash", python("import ctypes\nctypes.string_at(0)")),
    Failure("killed", "Killed", _survived("os.kill(os.getpid(), 9)")),
    Failure("initializer", "InitializerFailed", step="dataset-initializer",
            initializer=python('raise RuntimeError("no such dataset")')),
    Failure("crash-loop", "PythonError", python('raise ValueError("no rows")'), ends=False,
            pod={"restartPolicy": "OnFailure"}, job={"backoffLimit": 100}),
    # -- memory, disk, ports, files
    Failure("memory", "OutOfMemory", "exec python3 -c 'x = bytearray(512 << 20); print(len(x))'",
            container={"resources": {"limits": {"memory": "48Mi"}}}),
    Failure("disk", "DiskFull", python('open("/data/x", "wb").write(bytes(8 << 20))'),
            **_emptied("data", emptyDir={"medium": "Memory", "sizeLimit": "1Mi"})),
    Failure("evicted", "Evicted", python('open("/data/x", "wb").write(bytes(8 << 20))\ntime.sleep(600)'),
            **_emptied("data", emptyDir={"sizeLimit": "1Mi"})),
    Failure("port", "PortTaken", python('a = socket.create_server(("", 29500))\nsocket.create_server(("", 29500))')),
    Failure("permission", "PermissionDenied", python('open("/etc/x", "w")'),
            pod={"securityContext": {"runAsUser": 1000}}),
    Failure("file", "FileMissing", python('open("/workspace/dataset/train.json")')),
    # -- peers and network
    Failure("world-size", "WrongWorldSize", python(_WORLD)),
    Failure("name", "NameNotResolved", python('socket.getaddrinfo("data.invalid", 443)')),
    Failure("refused", "NetworkError", python('socket.create_connection(("127.0.0.1", 9))')),
    Failure("certificate", "CertificateExpired", python(_TLS), container={
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
    }, pod={"volumes": [{"name": "tls", "configMap": {"name": "expired"}}]}),
    Failure("straggler", "Straggler", python(_STEPS), SECOND_RANK, nodes=2, ends=False, state="Running"),
    # -- the machine
    Failure("drained", "Drained", ends=False, evicts=True, pod={"terminationGracePeriodSeconds": 3}),
    Failure("deadline", "DeadlineExceeded", step="", spec={"activeDeadlineSeconds": 5}),
    # -- pods that do not start
    Failure("image", "ImagePull", ends=False,
            container={"image": "registry.invalid/none:1", "imagePullPolicy": "IfNotPresent"}),
    Failure("unschedulable", "Unschedulable", ends=False, container={"resources": {"requests": {"cpu": "100"}}}),
    Failure("claim", "ClaimPending", ends=False,
            pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]}),
    Failure("secret", "MissingSecret", ends=False, container={
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "no-such", "key": "token"}}}],
    }),
    Failure("configmap", "MissingConfigMap", ends=False, container={
        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "no-such", "key": "x"}}}],
    }),
    Failure("mount", "BadMount", ends=False,
            **_emptied("data", hostPath={"path": "/no/such/folder", "type": "Directory"})),
    Failure("quota", "QuotaExceeded", step="", ends=False,
            container={"resources": {"limits": {"example.com/slot": "1"}}}),
    Failure("denied", "AdmissionDenied", step="", ends=False, namespace=STRICT),
    Failure("webhook", "WebhookDown", step="", ends=False, labels={"webhook": "down"}),
    Failure("suspended", "Suspended", step="", ends=False, spec={"suspend": True}),
)  # fmt: skip


_GLOO: Final = """
import datetime
import torch, torch.distributed as dist
job = socket.gethostname().rsplit("-node-", 1)[0]
dist.init_process_group("gloo", init_method=f"tcp://{job}-node-0-0.{job}:29500", rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=20))
print("met", flush=True)
"""
_REDUCE: Final = "dist.all_reduce(torch.ones(1))"
_TORCH: Final[Tree] = {"image": image("torch")}

WITH_TORCH: Final = (
    Failure("gloo-hang", "Hang", python(_GLOO + "if rank == 1: time.sleep(600)\n" + _REDUCE),
            SECOND_RANK, nodes=2, container=_TORCH),
    Failure("gloo-lost", "Killed", _survived(_GLOO + "if rank == 1: os.kill(os.getpid(), 9)\n" + _REDUCE),
            SECOND_RANK, nodes=2, container=_TORCH, pod={"terminationGracePeriodSeconds": 30}),
    Failure("gloo-error", "PythonError", python(_GLOO + "if rank == 1: {}[1]\n" + _REDUCE),
            SECOND_RANK, nodes=2, container=_TORCH, pod={"terminationGracePeriodSeconds": 30}),
)  # fmt: skip
"""Real gloo, between pods: torch takes its time to be imported, so only with FULL=1."""


def surroundings(namespace: str) -> list[Tree]:
    """Return what the failures need around them."""
    meta = {"namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "foreign", **meta},
            "binaryData": {"program": base64.b64encode(_FOREIGN).decode()},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "expired", **meta},
            "data": {"both.pem": _expired()},
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "slots", **meta},
            "spec": {"hard": {"requests.example.com/slot": "0"}},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "down"},
            "webhooks": [
                {
                    "name": "down.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:9/"},
                    "objectSelector": {"matchLabels": {"webhook": "down"}},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "timeoutSeconds": 1,
                }
            ],
        },
    ]


def _expired() -> str:
    """Return a key and a certificate of data.example that was good until yesterday."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "data.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("data.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (private + certificate.public_bytes(serialization.Encoding.PEM)).decode()
