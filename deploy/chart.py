"""The chart's templates that are made from plain manifests: the same text, with values where a value decides.

What an admin sets most is written by hand in `charts/trainplane/templates`; what has a source elsewhere is made here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from deploy import hub_rbac, rbac
from trainplane.api.legacy.kinds import BY_PLURAL

REPOSITORY: Final = Path(__file__).resolve().parent.parent
TEMPLATES: Final = Path("charts/trainplane/templates")
NOTE: Final = "{{- /* Written by `make manifests` from %s: change that. */ -}}\n"
SERVICE: Final = "kubeflow-trainer-controller-manager"
NAMESPACE: Final = "kubeflow-system"
_RELEASE_NAMESPACE: Final = "{{ .Release.Namespace }}"

RUNTIMES: Final = {
    "torch-distributed": "torchDistributed",
    "torch-distributed-with-cache": "torchDistributedWithCache",
    "data-cache": "dataCache",
    "torch-elastic": "torchElastic",
    "deepspeed-distributed": "deepspeedDistributed",
    "mlx-distributed": "mlxDistributed",
    "jax-distributed": "jaxDistributed",
    "xgboost-distributed": "xgboostDistributed",
    "tensorflow-distributed": "tensorflowDistributed",
    "paddle-distributed": "paddleDistributed",
    "flux-distributed": "fluxDistributed",
    "torchtune-llama3.2-1b": "torchtuneDistributed.llama3_2_1B",
    "torchtune-llama3.2-3b": "torchtuneDistributed.llama3_2_3B",
    "torchtune-qwen2.5-1.5b": "torchtuneDistributed.qwen2_5_1_5B",
}
"""Each runtime of `runtimes/` and its switch below `runtimes` in the values; the reference's, where it has one."""

REFERENCE_SWITCHES: Final = {
    "torchDistributedWithCache": "(((.Values.dataCache).runtimes).torchDistributedWithCache).enabled",
}
"""Where the reference's chart has a switch in another place, which holds too."""

_IMAGE = re.compile(r"image: (?P<image>\S+) +# images\.txt: (?P<name>\S+)")
POD_IMAGES: Final = frozenset({"initializers", "cache"})
"""Images of ours that run in user pods."""
OWN_IMAGES: Final = {
    "torchtune": "torchtuneDistributed",
    "deepspeed": "deepspeedDistributed",
    "mlx": "mlxDistributed",
    "xgboost": "xgboostDistributed",
}
"""Images that values may replace, as in the reference, and the part of the values where they stand."""


def files() -> dict[Path, str]:
    """Return every generated file of the chart, by its path in the repository."""
    made = {TEMPLATES / "_rules.tpl": _rules(), hub_rbac.PATH: hub_rbac.text()}
    made[hub_rbac.LEGACY_PATH] = hub_rbac.legacy_text()
    for path in sorted((REPOSITORY / "manifests/crds").glob("*.yaml")):
        made[TEMPLATES / "crds" / path.name] = conditional(path, ".Values.crds.enabled", kept_crd(path))
    for path in sorted((REPOSITORY / "runtimes").glob("*.yaml")):
        made[TEMPLATES / "runtimes" / path.name] = _runtime(path)
    for name in ("webhooks", "kueue-policy", "public"):
        made[TEMPLATES / "operator" / f"{name}.yaml"] = _operator(REPOSITORY / f"manifests/operator/{name}.yaml")
    for path in sorted((REPOSITORY / "manifests/hub").glob("*.yaml")):
        if path.stem not in {"namespace", "worker-role"}:
            text = made.get(path.relative_to(REPOSITORY)) or path.read_text()
            made[TEMPLATES / "hub" / path.name] = _hub(path, text)
    return made


def source(path: Path) -> str:
    """Return a file's path in the repository."""
    return str(path.relative_to(REPOSITORY))


def escaped(text: str) -> str:
    """Return a text in which braces of others (Prometheus' templates) are not the chart's."""
    return re.sub(r"\{\{.*?\}\}", lambda found: "{{ `" + found.group() + "` }}", text)


def conditional(path: Path, condition: str, body: str) -> str:
    """Return a template that has a body under a condition, and says where the body is from."""
    return NOTE % source(path) + "{{- if " + condition + " }}\n" + body.rstrip("\n") + "\n{{- end }}\n"


def kept_crd(path: Path, annotations: str = "") -> str:
    """Return a CRD that stays when the chart goes, with more annotations: with it would go everybody's objects."""
    text = escaped(path.read_text())
    kept = "    helm.sh/resource-policy: keep\n" + annotations
    if "\n  annotations:\n" in text:
        return text.replace("\n  annotations:\n", f"\n  annotations:\n{kept}", 1)
    return text.replace("\nmetadata:\n", f"\nmetadata:\n  annotations:\n{kept}", 1)


def _runtime(path: Path) -> str:
    """Return a runtime behind its switch, with the common labels, and images that values may replace."""
    switch = RUNTIMES[path.stem]

    def image(found: re.Match[str]) -> str:
        if found["name"] in POD_IMAGES:
            return f'image: {{{{ include "trainplane.{found["name"]}.image" . }}}}'
        owner = OWN_IMAGES.get(found["name"])
        if owner is None:
            return f"image: {found['image']}"
        values = f".Values.runtimes.{owner}.image"
        return f'image: {{{{ include "trainplane.runtimeImage" {values} | default "{found["image"]}" }}}}'

    text = _IMAGE.sub(image, escaped(path.read_text()))
    common = "    {{- with .Values.runtimes.commonLabels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
    text = text.replace("\n  labels:\n", f"\n  labels:\n{common}", 1)
    wanted = f".Values.runtimes.{switch}"
    if switch in REFERENCE_SWITCHES:
        wanted = f'(dict "enabled" (or {wanted}.enabled {REFERENCE_SWITCHES[switch]}))'
    condition = f'include "trainplane.runtimeEnabled" (list . {wanted})'
    return conditional(path, condition, text)


def _operator(path: Path) -> str:
    """Return a manifest of the operator under the release's names."""
    text = released(escaped(path.read_text()))
    if path.stem == "webhooks":
        head, *items = webhooks(text)
        return NOTE % source(path) + head + "".join("\n" + _unless_scoped(item) for item in items)
    if path.stem == "kueue-policy":
        return conditional(
            path, ".Values.kueuePolicy.enabled", text.replace("{{ .Values.webhook.failurePolicy }}", "Fail")
        )
    return NOTE % source(path) + text


def released(text: str) -> str:
    """Return a manifest under the release's names."""
    text = text.replace(f"name: {SERVICE}", 'name: {{ include "trainplane.service.name" . }}')
    text = text.replace(f"namespace: {NAMESPACE}", f"namespace: {_RELEASE_NAMESPACE}")
    return text.replace("failurePolicy: Fail", "failurePolicy: {{ .Values.webhook.failurePolicy }}")


def webhooks(text: str) -> list[str]:
    """Return webhook configurations as lines up to the first webhook, then each webhook, and each line between files.

    Those of an operator of one namespace have their own names, and its place.
    """
    metadata = '  {{- include "trainplane.webhook.metadata" . | nindent 2 }}\n'
    text = re.sub(
        r"(\nmetadata:\n  name: )(\w+)\.(\S+)\n",
        rf'\1{{{{ include "trainplane.webhook.name" (list . "\2" "\3") }}}}\n{metadata}',
        text,
    )
    text = text.replace(
        "    clientConfig:\n",
        '    {{- include "trainplane.webhook.place" . | nindent 4 }}\n    clientConfig:\n'
        "      {{- with .Values.webhook.caBundle }}\n      caBundle: {{ . }}\n      {{- end }}\n",
    )
    return re.split(r"\n(?=---|  (?:- name|# An operator))", text)


def _unless_scoped(item: str) -> str:
    """Return a webhook; one for objects without a namespace is not for an operator of one namespace."""
    if "resources: [clustertrainingruntimes]" not in item:
        return item
    return "  {{- if not .Values.manager.watchNamespace }}\n" + item.rstrip("\n") + "\n  {{- end }}"


_IMAGE_OF_HUB: Final = (
    "image: trainplane/operator:latest",
    'image: {{ include "trainplane.image" . }}\n          imagePullPolicy: {{ .Values.image.pullPolicy }}',
)
_KUEUE: Final = "{{ .Values.hub.kueueNamespace }}"


def _ports(comment: str, value: str) -> tuple[str, str]:
    """Return the ports that stand below a comment in a policy, and the same out of a value.

    A release that is upgraded with its former values lacks newer ones, and a rule without ports would be one for all.
    """
    usual = ("443", "6443", "8443")
    head, port = f"    - ports: # {comment}\n", "        - {protocol: TCP, port: %s}\n"
    each = f"        {{{{- range .Values.{value} | default (list {' '.join(usual)}) }}}}\n"
    return head + "".join(port % one for one in usual), head + each + port % "{{ . }}" + "        {{- end }}\n"


_KINDS: Final = 'include "trainplane.hubKinds" .'
"""Gives the older kinds that the hub looks after, with commas; empty if there are none."""


def _with_kinds(line: str, indent: int) -> str:
    """Return a line that is only there with older kinds, which are `.` in it."""
    lines = (f"{{{{- with {_KINDS} }}}}", line, "{{- end }}")
    return "".join(f"{' ' * indent}{one}\n" for one in lines)


_HUB: Final = {
    "front": (
        _IMAGE_OF_HUB,
        (
            "trainplane.hub.front]\n",
            "trainplane.hub.front]\n" + _with_kinds('args: ["--legacy-kinds={{ . }}"]', indent=10),
        ),
    ),
    "legacy-rbac": (
        (f"[{', '.join(BY_PLURAL)}]", f"[{{{{ {_KINDS} }}}}]"),
        (
            "".join(map(hub_rbac.parts_of, BY_PLURAL)),
            f'  {{{{- range splitList "," ({_KINDS}) }}}}\n{hub_rbac.parts_of("{{ . }}")}  {{{{- end }}}}\n',
        ),
    ),
    "network-policy": (
        _ports("of the hub's API server", "networkPolicy.apiServerPorts"),
        _ports("of the workers' API servers", "hub.workerPorts"),
    ),
    "rbac": (("namespace: kueue-system", f"namespace: {_KUEUE}"),),
    "server": (
        _IMAGE_OF_HUB,
        ("storage: 10Gi", "storage: {{ .Values.hub.storage.size }}"),
        (
            "- --data=/data\n",
            f"- --data=/data\n            - --kueue-namespace={_KUEUE}\n"
            + _with_kinds("- --legacy-kinds={{ . }}", indent=12),
        ),
        ("--keep-job-bytes=256Mi", "--keep-job-bytes={{ .Values.hub.keepJobBytes }}"),
        ("--keep-total-bytes=8Gi", "--keep-total-bytes={{ .Values.hub.keepTotalBytes }}"),
        ("--keep-finished=14d", "--keep-finished={{ .Values.hub.keepFinished }}"),
        ("serviceaccount:trainplane-hub:", f"serviceaccount:{_RELEASE_NAMESPACE}:"),
        # Kept logs outlive the release: whoever uninstalls it did not ask for their end.
        (
            "kind: PersistentVolumeClaim\nmetadata:\n",
            "kind: PersistentVolumeClaim\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n",
        ),
    ),
}
"""What values decide in the hub's manifests, by file: the text there, and the chart's."""


def _hub(path: Path, plain_text: str) -> str:
    """Return a manifest of the hub in the release's namespace.

    Raises:
        ValueError: the manifest no longer has a text that a value should decide.
    """
    text = escaped(plain_text).replace("namespace: trainplane-hub", f"namespace: {_RELEASE_NAMESPACE}")
    for plain, templated in _HUB.get(path.stem, ()):
        if plain not in text:
            raise ValueError(
                f"{source(path)}: has no {plain!r}, which the chart's values decide: change deploy/chart.py"
            )
        text = text.replace(plain, templated)
    switch = {
        "alerts": ".Values.prometheusRule.enabled",
        "network-policy": ".Values.networkPolicy.enabled",
        "legacy-rbac": f"({_KINDS})",
    }.get(path.stem)
    condition = f"and .Values.hub.enabled {switch}" if switch else ".Values.hub.enabled"
    return conditional(path, condition, text)


def _yaml(tree: Any) -> str:
    text: str = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=110)
    return text


def _rules() -> str:
    """Return the roles' rules as named templates: the chart decides which are bound where."""
    names = {
        "{lease}": '{{ include "trainplane.lease.name" . }}',
        "{secret}": '{{ include "trainplane.secret.name" . }}',
    }
    parts = [NOTE % "deploy/rbac.py"]
    for scope in ("jobs", "secrets", "cluster", "election", "own"):
        for when in ("", "certificates", "metrics", "progress"):
            found = rbac.rules(scope, when)
            if not found:
                continue
            text = _yaml(found)
            for name, value in names.items():
                text = text.replace(f"'{name}'", value)
            title = ".".join(filter(None, ("trainplane.rules", scope, when)))
            parts.append(f'{{{{- define "{title}" -}}}}\n{text.rstrip()}\n{{{{- end }}}}\n')
    return "\n".join(parts)
