"""`python -m deploy.kustomize`: render the chart into `manifests/base`, under the reference's names.

The overlays of `manifests/overlays` put these together with the CRDs, webhooks and runtimes, which are plain files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.chart import REPOSITORY
from lab.engines import binary

CHART: Final = REPOSITORY / "charts/trainplane"
RELEASE: Final = "kubeflow-trainer"
NAMESPACE: Final = "kubeflow-system"
OPTIONS: Final = (f"--namespace={NAMESPACE}", f"--set=fullnameOverride={RELEASE}")
RENDERED: Final = {
    "manager": ("config", "deployment", "disruption-budget", "network-policy", "service", "shared"),
    "rbac": ("roles",),
}
"""Templates of the chart, by folder, that become files of `manifests/base`."""
HELMS_OWN: Final = ("app.kubernetes.io/managed-by", "helm.sh/chart")
"""Labels that say who installs: not kustomize's."""


def helm(*arguments: str) -> str:
    """Run helm and return what it prints; its own words go to stderr."""
    done = subprocess.run([binary("helm"), *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Take Helm's own labels from an object, and from the pods that it makes."""
    for labels in (
        document["metadata"].get("labels"),
        document.get("spec", {}).get("template", {}).get("metadata", {}).get("labels"),
    ):
        for name in HELMS_OWN:
            (labels or {}).pop(name, None)
    return document


def files() -> dict[Path, str]:
    """Return the files of `manifests/base` that come from the chart, by their path in the repository."""
    made = {}
    for folder, names in RENDERED.items():
        for name in names:
            text = helm("template", RELEASE, str(CHART), *OPTIONS, f"--show-only=templates/{folder}/{name}.yaml")
            documents = [plain(document) for document in yaml.safe_load_all(text) if document]
            made[Path("manifests/base") / folder / f"{name}.yaml"] = (
                f"# Written by `make kustomize` from charts/trainplane/templates/{folder}/{name}.yaml: change that.\n"
                + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110)
            )
    return made


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def main() -> int:
    """Write the files."""
    for path, text in files().items():
        (REPOSITORY / path).parent.mkdir(parents=True, exist_ok=True)
        (REPOSITORY / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
