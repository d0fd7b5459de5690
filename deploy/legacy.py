"""What is installed for the older kinds, where an admin asks for them: CRDs, webhooks, rights.

Nothing of it comes unasked: `legacy.kinds` of the Configuration, which is empty, is the one switch of the chart. By
kustomize it is the overlay `legacy`, with every kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from deploy import chart
from deploy.legacy_rbac import NEEDS, Need, rules
from trainplane.api.configuration import LEGACY_KINDS
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import KINDS

PLAIN: Final = Path("manifests/legacy")
TEMPLATES: Final = chart.TEMPLATES / "legacy"
_CRDS: Final = Path("manifests/crds-legacy")
OVERLAY: Final = Path("manifests/overlays/legacy")
_CONFIG: Final = Path("manifests/base/manager/config.yaml")
_CONFIG_KEY: Final = "controller_manager_config.yaml"
_WRITTEN: Final = "# Written by `make manifests` from %s: change that.\n"

_INJECTED: Final = (
    "    {{- if .Values.certManager.enabled }}\n"
    '    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "trainplane.secret.name" . }}\n'
    "    {{- end }}\n"
)
_AUTHORITY: Final = (
    "      clientConfig:\n        {{- with .Values.webhook.caBundle }}\n        caBundle: {{ . }}\n        {{- end }}\n"
)


def files() -> dict[Path, str]:
    """Return every file that is written here, by its path in the repository."""
    plain = _webhooks()
    made = {
        PLAIN / "webhooks.yaml": plain,
        PLAIN / "rbac.yaml": _rbac(),
        OVERLAY / "config.yaml": _config(),
        TEMPLATES / "webhooks.yaml": _webhook_templates(plain),
        TEMPLATES / "_rules.tpl": _rule_templates(),
    }
    for path in sorted((chart.REPOSITORY / _CRDS).glob("*.yaml")):
        made[TEMPLATES / path.name] = _crd_template(path)
    return made


def _any(*kinds: str) -> str:
    """Return the condition that any of some kinds is served."""
    return f'include "trainplane.legacy" (list . {" ".join(map(_quoted, kinds))})'


def _quoted(text: str) -> str:
    return f'"{text}"'


def _crd_template(path: Path) -> str:
    """Return a CRD under its switch; one of several versions is converted by this release's operator."""
    text = path.read_text()
    text = chart.released(chart.kept_crd(path, _INJECTED if "\n  conversion:\n" in text else ""))
    text = text.replace("      clientConfig:\n", _AUTHORITY, 1)
    plural = path.stem.partition("_")[2]
    return chart.conditional(path, f"and .Values.crds.enabled ({_any(plural)})", text)


def _webhooks() -> str:
    """Return the webhook configurations for every kind of job.

    A job is completed when it is made, and never after: Kueue compares its pods with what it admitted.
    """
    mutating = _configuration("Mutating", names.DEFAULTER, "mutate", "CREATE", "    reinvocationPolicy: Never\n")
    validating = _configuration("Validating", names.VALIDATOR, "validate", "CREATE, UPDATE")
    return f"{_WRITTEN % 'deploy/legacy.py'}{mutating}---\n{validating}"


def _configuration(kind: str, name: str, verb: str, operations: str, more: str = "") -> str:
    """Return a configuration; a version of a kind that is not stored comes to its webhook converted."""
    first, _, rest = name.partition(".")
    webhooks = [
        _WEBHOOK.format(
            name=f"{first}.{one.singular}.{rest}",
            service=chart.SERVICE,
            namespace=chart.NAMESPACE,
            path=one.review_path(verb),
            group=names.GROUP,
            version=one.version,
            operations=operations,
            plural=one.plural,
            more=more,
        )
        for one in KINDS.values()
    ]
    return _CONFIGURATION.format(kind=kind, name=name) + "".join(webhooks)


_CONFIGURATION: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata:
  name: {name}
webhooks:
"""
_WEBHOOK: Final = """\
  - name: {name}
    clientConfig:
      service:
        name: {service}
        namespace: {namespace}
        path: {path}
    rules:
      - apiGroups: [{group}]
        apiVersions: [{version}]
        operations: [{operations}]
        resources: [{plural}]
        scope: "*"
    matchPolicy: Equivalent
{more}    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
"""


def _webhook_templates(plain: str) -> str:
    """Return the configurations under their switches: as a whole, and webhook by webhook."""
    head, *items = chart.webhooks(chart.released(plain.partition("\n")[2]))
    body = head + "".join("\n" + _switched(item) for item in items)
    path = chart.REPOSITORY / "deploy/legacy.py"
    return chart.conditional(path, _any(*(kind.plural for kind in KINDS.values())), body)


def _switched(item: str) -> str:
    kind = next((kind for kind in KINDS.values() if f".{kind.singular}." in item.partition("\n")[0]), None)
    if kind is None:
        return item
    return f"  {{{{- if {_any(kind.plural)} }}}}\n" + item.rstrip("\n") + "\n  {{- end }}"


def _rule_templates() -> str:
    """Return the rules as named templates, each need under its switch."""
    parts = [chart.NOTE % "deploy/legacy_rbac.py"]
    for scope in ("jobs", "cluster"):
        for when in ("", "certificates"):
            needs = [(need, found) for need in NEEDS if (found := rules(need, scope, when))]
            if not needs:
                continue
            title = ".".join(filter(None, ("trainplane.rules.legacy", scope, when)))
            texts = [f"{{{{- if {_condition(need)} }}}}\n{_yaml(found)}{{{{- end }}}}\n" for need, found in needs]
            parts.append(f'{{{{- define "{title}" -}}}}\n{"".join(texts)}{{{{- end }}}}\n')
    return "\n".join(parts)


def _condition(need: Need) -> str:
    served = _any(*need.kinds)
    return f'and ({served}) (eq (include "trainplane.legacy.gang" .) "{need.gang}")' if need.gang else served


def _yaml(tree: Any) -> str:
    text: str = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=110)
    return text


def _rbac() -> str:
    """Return the rights for every kind, as a role of their own beside the operator's."""
    name = f"{chart.SERVICE}-legacy"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [grant.rule() for need in NEEDS for grant in need.grants],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": chart.SERVICE, "namespace": chart.NAMESPACE}],
    }
    documents = yaml.safe_dump_all([role, binding], sort_keys=False, default_flow_style=None, width=110)
    return _WRITTEN % "deploy/legacy_rbac.py" + documents


def _config() -> str:
    """Return the operator's settings with every kind, as a patch for kustomize."""
    config = yaml.safe_load((chart.REPOSITORY / _CONFIG).read_text())
    settings = yaml.safe_load(config["data"][_CONFIG_KEY])
    settings["legacy"] = {**settings.get("legacy", {}), "kinds": list(LEGACY_KINDS)}
    indented = "".join(f"    {line}\n" for line in yaml.safe_dump(settings).splitlines())
    return (
        _WRITTEN % f"{_CONFIG} and deploy/legacy.py"
        + "apiVersion: v1\nkind: ConfigMap\n"
        + f"metadata:\n  name: {config['metadata']['name']}\n  namespace: {chart.NAMESPACE}\n"
        + f"data:\n  {_CONFIG_KEY}: |\n{indented}"
    )
