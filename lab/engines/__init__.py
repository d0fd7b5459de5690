"""The engines of the lab: which Go modules they come from, and where their binaries and manifests lie once built.

One is written in Rust: a Go module pins its source, and the lock file in there what cargo builds it with.

Each folder beside this file is a Go module of a few lines that pins one engine; its `go.sum` is the proof of what was
built. `BUILD` keys are hashes of a folder's files, so an edit of go.mod, go.sum or main.go builds anew and nothing
else does.

Of Kubernetes, JobSet and Kueue there are other releases too, in folders of their own: `LAB_KUBERNETES=1.31`,
`LAB_JOBSET=0.10.1` and `LAB_KUEUE=0.14.0` choose them, for `make engines` and for whatever starts a cluster. They are
built when they are chosen or named, and at no other time.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from lab.errors import BuildError
from lab.paths import cache_root

SOURCES = Path(__file__).parent
KUBERNETES_VERSION = "v1.36.3"
KUEUE_VERSION = "v0.19.0"


@dataclass(frozen=True)
class Engine:
    """One Go module and the binaries that we build of it."""

    name: str
    """The folder under `lab/engines`, and under the cache."""
    binaries: dict[str, str]
    """Name of the binary → Go package, or the binary's name in `crate`; empty for manifests alone."""
    module: str = ""
    """The Go module whose files (CRDs, webhooks) are kept beside the binaries; empty for none."""
    manifests: tuple[str, ...] = ()
    """Folders of `module` to keep."""
    ldflags: str = ""
    """Linker flags beyond `-s -w`: version stamps."""
    tags: str = ""
    """Go's build tags, by which a module leaves out what nobody here needs."""
    crate: str = ""
    """The folder of `module` that cargo builds `binaries` from; empty: Go builds them."""
    on_demand: bool = False
    """Built when it is named, or with FULL=1: what full-size tests alone need keeps nobody else waiting."""

    @property
    def sources(self) -> Path:
        """The folder with go.mod and go.sum."""
        return SOURCES / self.name

    def key(self) -> str:
        """Return the hash of all that decides the outcome of a build."""
        decisive = (sorted(self.binaries.items()), self.manifests, self.ldflags, *filter(None, (self.tags, self.crate)))
        digest = hashlib.sha256(repr(decisive).encode())
        for path in sorted(self.sources.iterdir()):
            if path.is_file():
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()[:16]

    def built(self) -> Path:
        """Return the folder in the cache where this very version is, or will be."""
        return cache_root() / "engines" / self.name / self.key()


def _stamps(variable_prefix: str, version: str) -> str:
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {variable_prefix}.{name}={value}" for name, value in values.items())


_K8S = "k8s.io/kubernetes/cmd/"
_TRAINER = "github.com/kubeflow/trainer/v2"
_TRAINING = "github.com/kubeflow/training-operator"


def _kubernetes(name: str, version: str) -> Engine:
    programs = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    # Unstamped, the server calls itself v0.0.0 and clients misjudge what it can do.
    stamped = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    ldflags = " ".join(_stamps(package, version) for package in stamped)
    return Engine(name, {program: _K8S + program for program in programs}, ldflags=ldflags)


def _jobset(name: str) -> Engine:
    return Engine(
        name,
        {"jobset": "sigs.k8s.io/jobset"},
        module="sigs.k8s.io/jobset",
        manifests=("config/components", "charts/jobset"),
    )


def _kueue(name: str, version: str) -> Engine:
    return Engine(
        name,
        {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
        module="sigs.k8s.io/kueue",
        manifests=("config/components", "charts/kueue"),
        ldflags=f"-X sigs.k8s.io/kueue/pkg/version.GitVersion={version}",
    )


def _oracle(operator: str, crds: str) -> Engine:
    name = f"{operator}-oracle"
    return Engine(name, {name: "."}, module=f"github.com/kubeflow/{operator}", manifests=(crds,))


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("pause", {"pause": "."}),
        Engine("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        # What an admin restores etcd with: `lab.backup`.
        Engine("etcdutl", {"etcdutl": "go.etcd.io/etcd/etcdutl/v3"}),
        _kubernetes("kubernetes", KUBERNETES_VERSION),
        _jobset("jobset"),
        Engine("coredns", {"coredns": "."}),
        Engine(
            "trainer",
            {"trainer-controller-manager": f"{_TRAINER}/cmd/trainer-controller-manager"},
            module=_TRAINER,
            manifests=("manifests", "charts/kubeflow-trainer", "pkg/initializers"),
        ),
        _kueue("kueue", KUEUE_VERSION),
        Engine(
            "kwok",
            {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
            module="sigs.k8s.io/kwok",
            manifests=("kustomize",),
        ),
        # What the operators of older kinds make of a job, asked of their own code without a cluster; and their CRDs.
        _oracle("training-operator", "manifests/base/crds"),
        _oracle("mpi-operator", "manifests/base"),
        # What an admin installs our chart with.
        Engine(
            "helm", {"helm": "helm.sh/helm/v4/cmd/helm"}, ldflags="-X helm.sh/helm/v4/internal/version.version=v4.3.1"
        ),
        # Earlier releases of the reference: only their CRDs, which ours must be able to stand in for.
        *(
            Engine(f"trainer-{release}", {}, module=_TRAINER, manifests=("manifests",))
            for release in ("v2.0", "v2.1", "v2.2")
        ),
        # CRDs of those whose objects our chart makes where an admin asks for it.
        Engine(
            "prometheus-operator",
            {},
            module="github.com/prometheus-operator/prometheus-operator",
            manifests=("example/prometheus-operator-crd",),
        ),
        Engine("cert-manager", {}, module="github.com/cert-manager/cert-manager", manifests=("deploy/crds",)),
        # An S3 server on a folder, for what fetches data.
        Engine("versitygw", {"versitygw": "github.com/versity/versitygw/cmd/versitygw"}),
        # The same for Google's, as far as it can be read.
        Engine("fake-gcs-server", {"fake-gcs-server": "github.com/fsouza/fake-gcs-server"}, on_demand=True),
        Engine(
            "scheduler-plugins",
            {"coscheduling-scheduler": "."},
            module="sigs.k8s.io/scheduler-plugins",
            manifests=("manifests/coscheduling",),
            on_demand=True,
        ),
        Engine(
            "volcano",
            {
                "vc-scheduler": "volcano.sh/volcano/cmd/scheduler",
                "vc-controller-manager": "volcano.sh/volcano/cmd/controller-manager",
            },
            module="volcano.sh/volcano",
            manifests=("config/crd/volcano/bases", "installer/helm/chart/volcano/config"),
            on_demand=True,
        ),
        # What evaluates the dashboard's and the alerts' queries. Its other ways to find targets are clouds' SDKs.
        Engine(
            "prometheus",
            {name: f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")},
            tags="remove_all_sd,enable_kubernetes_sd",
            on_demand=True,
        ),
        # The operator of the older kinds, which ours takes over from. Its modules are those of the oracle, so that
        # whoever has one built waits for little more than a link.
        Engine(
            "training-operator",
            {"training-operator": f"{_TRAINING}/cmd/training-operator.v1"},
            module=_TRAINING,
            manifests=("manifests/base",),
            on_demand=True,
        ),
        # The reference's data cache, which ours is measured beside.
        Engine(
            "data-cache",
            {"data-cache-head": "head", "data-cache-worker": "worker"},
            module=_TRAINER,
            crate="pkg/data_cache",
            on_demand=True,
        ),
        # What many check rendered charts with, before a cluster sees them.
        Engine("kubeconform", {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"}, on_demand=True),
    )
}
"""All engines, in the order in which a start needs them."""

OTHERS: dict[str, dict[str, Engine]] = {
    "kubernetes": {
        "1.31": _kubernetes("kubernetes-v1.31", "v1.31.0"),
        "1.37": _kubernetes("kubernetes-v1.37", "v1.37.0"),
    },
    "jobset": {"0.10.1": _jobset("jobset-v0.10.1")},
    "kueue": {release: _kueue(f"kueue-v{release}", f"v{release}") for release in ("0.14.0", "0.15.0", "0.19.2")},
}
"""Other releases of an engine, by the words that choose them."""

_USUAL = {"kubernetes": "1.36", "jobset": "0.12.0", "kueue": "0.19.0"}
"""The words for the releases in `ENGINES`, which are also what no word chooses."""

_OWNERS = {binary: engine.name for engine in ENGINES.values() for binary in engine.binaries}


def release(name: str) -> str:
    """Return which release of an engine `LAB_NAME` chooses, of those that `OTHERS` has more than one of."""
    variable = f"LAB_{name.upper()}"
    chosen = os.environ.get(variable) or _USUAL[name]
    known = (_USUAL[name], *OTHERS[name])
    if chosen not in known:
        message = f"{variable}={chosen}: the lab has no such release of {name}; choose one of {', '.join(known)}."
        raise BuildError(message)
    return chosen


def chosen(name: str) -> Engine:
    """Return an engine, in the release that the environment chooses."""
    return OTHERS[name].get(release(name), ENGINES[name]) if name in OTHERS else ENGINES[name]


def binary(name: str) -> str:
    """Return the path of a built binary; a `BuildError` names the command that builds it."""
    engine = chosen(_OWNERS[name])
    path = engine.built() / "bin" / name
    if not path.exists():
        message = f"{name} is not built for this checkout: run `{_builder(engine)}`."
        raise BuildError(message)
    return str(path)


def manifests(engine: str) -> Path:
    """Return the folder with an engine's own CRDs, webhooks and RBAC, as its module ships them."""
    path = chosen(engine).built() / "module"
    if not path.exists():
        message = f"the manifests of {engine} are not in the cache: run `{_builder(chosen(engine))}`."
        raise BuildError(message)
    return path


def _builder(engine: Engine) -> str:
    for name, releases in OTHERS.items():
        for word, other in releases.items():
            if engine is other:
                return f"make engines LAB_{name.upper()}={word}"
    return "make engines FULL=1" if engine.on_demand else "make engines"
