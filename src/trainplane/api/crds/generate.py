"""Make `podschema.json` from what a cluster says of its own types: `python -m trainplane.api.crds.generate`.

The pod and JobSet parts of our CRDs are other projects' types. Nobody can keep such a schema right by hand, so it is
made from the API server's OpenAPI v3 documents and from JobSet's CRD, and committed: a build needs no cluster, and a
test makes it anew from a live one and compares.

OpenAPI and CRDs do not say things alike. What this module turns around:

- A reference may stand alone or inside `allOf`; here it is always a bare `$ref` to a short name (`core.v1.PodSpec`).
- OpenAPI writes Go's zero values as defaults of required fields; only a default of an optional field is a real one.
- Quantities, int-or-strings and times are types of their own in OpenAPI and plain schemas in a CRD.
- OpenAPI cannot tell a default that Go code sets from one that the type declares, and loses some map types. JobSet's
  CRD embeds the same Job and claim types as a CRD generator sees them, so it has the last word on both.
- A template's metadata is the few fields that a template may set; a bare object would lose labels to pruning.
- Descriptions, patch strategies and unions have no place in the file.
- JobSet refuses a namespace of claim templates by a rule that names the field, and `namespace` is a reserved word of
  CEL in Kubernetes 1.31, which refuses the whole CRD for it. Here the rule stands on the field and need not name it.

    kubectl get --raw /openapi/v3/api/v1 > core.json         (also apis/batch/v1 and apis/autoscaling/v2)
    python -m trainplane.api.crds.generate --openapi core.json batch.json autoscaling.json --jobset CRD.yaml
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Schema = dict[str, Any]

OUTPUT = Path(__file__).with_name("podschema.json")

JOBSET_SPEC = "jobset.v1alpha2.JobSetSpec"

ROOTS = (
    "core.v1.Affinity",
    "core.v1.EnvVar",
    "core.v1.LocalObjectReference",
    "core.v1.PodSchedulingGate",
    "core.v1.PodSecurityContext",
    "core.v1.ResourceRequirements",
    "core.v1.SecurityContext",
    "core.v1.Toleration",
    "core.v1.Volume",
    "core.v1.VolumeMount",
    "core.v1.PersistentVolumeClaim",
    "autoscaling.v2.MetricSpec",
    "batch.v1.JobTemplateSpec",
)
"""The types that our CRDs name; all that they refer to comes along."""

_REF = "#/components/schemas/"

_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

_QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

CLAIM = "core.v1.PersistentVolumeClaim"
CLAIM_META = "jobset.v1alpha2.VolumeClaimTemplateMeta"
"""Metadata of a JobSet's claim templates, whose claims are made where the JobSet is."""

_STRING_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

_META: Schema = {
    "annotations": _STRING_MAP,
    "finalizers": {"type": "array", "items": {"type": "string"}},
    "labels": _STRING_MAP,
    "name": {"type": "string"},
    "namespace": {"type": "string"},
}
"""The few fields of a template's metadata."""

LEAVES: dict[str, Schema] = {
    "resource.Quantity": {**_INT_OR_STRING, "pattern": _QUANTITY_PATTERN},
    "intstr.IntOrString": _INT_OR_STRING,
    "meta.v1.Time": {"type": "string", "format": "date-time"},
    "meta.v1.FieldsV1": {"type": "object"},
    "meta.v1.ObjectMeta": {"type": "object", "properties": _META},
    CLAIM_META: {
        "type": "object",
        "properties": {
            **_META,
            "namespace": {
                "type": "string",
                "x-kubernetes-validations": [
                    {
                        "rule": "size(self) == 0",
                        "message": "leave metadata.namespace out: a claim is made in the namespace of its TrainJob",
                    }
                ],
            },
        },
    },
}
"""Types whose form in a CRD is fixed by the API machinery and not said in OpenAPI."""

_KEPT = (
    "type",
    "format",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def short_name(name: str) -> str:
    """Shorten an OpenAPI name: `io.k8s.api.core.v1.PodSpec` is `core.v1.PodSpec`."""
    for prefix in ("io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.api.", "io.k8s.api.", "io.k8s."):
        if name.startswith(prefix):
            return name.removeprefix(prefix).replace("apimachinery.pkg.util.", "")
    return name


def structural(schema: Mapping[str, Any]) -> Schema:
    """Turn one OpenAPI v3 schema into the form that a CRD uses, references short and unresolved."""
    target = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ())), None)
    if target is not None:
        return {"$ref": short_name(target.removeprefix(_REF))}
    result: Schema = {key: schema[key] for key in _KEPT if key in schema}
    required = sorted(schema.get("required", ()))
    if required:
        result["required"] = required
    if "properties" in schema:
        result["properties"] = {
            name: _property(value, required=name in required) for name, value in schema["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in schema:
            result[key] = structural(schema[key])
    return result


def _property(schema: Mapping[str, Any], *, required: bool) -> Schema:
    result = structural(schema)
    if "$ref" not in result and not required and "default" in schema:
        result["default"] = schema["default"]
    return result


def references(schema: Any) -> set[str]:
    """Name every type that a schema refers to."""
    if isinstance(schema, list):
        return {name for item in schema for name in references(item)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"]} if "$ref" in schema else set()
    return own.union(*(references(value) for value in schema.values()))


def jobset_spec(crd: Mapping[str, Any]) -> Schema:
    """Take JobSet's spec out of its CRD; the Job and claim templates inside become references to Kubernetes' own.

    CEL rules carry over as facts, with a message in our words.
    """
    spec: Schema = _without_words(_spec_of(crd))
    spec["properties"]["replicatedJobs"]["items"]["properties"]["template"] = {"$ref": "batch.v1.JobTemplateSpec"}
    policy = spec["properties"]["volumeClaimPolicies"]["items"]
    policy["properties"]["templates"]["items"] = {"$ref": CLAIM}
    rules = [rule for rule in policy.pop("x-kubernetes-validations", ()) if _squeezed(rule["rule"]) != _NO_NAMESPACE]
    # CEL refuses what has not got the fields that a rule reads, so they were required all along.
    policy |= {"required": ["templates"]} | ({"x-kubernetes-validations": rules} if rules else {})
    return spec


def _without_words(schema: Any) -> Any:
    """Drop descriptions and put our own sentence on each rule."""
    if isinstance(schema, list):
        return [_without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: _without_words(value)
        for key, value in schema.items()
        if not (key == "description" and isinstance(value, str))
    }
    if "x-kubernetes-validations" in result:
        result["x-kubernetes-validations"] = [
            {**rule, "message": RULES[_squeezed(rule["rule"])]} for rule in result["x-kubernetes-validations"]
        ]
    return result


def _squeezed(rule: str) -> str:
    return " ".join(rule.split())


_NO_NAMESPACE = "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)"
RULES: dict[str, str] = {
    "self == oldSelf": "once set, this part of a JobSet template cannot change: create another runtime instead",
    _NO_NAMESPACE: "",  # `CLAIM_META` says it
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' "
    "&& self.replicatedJobs.exists(x, has(x.dependsOn)))": (
        "startupPolicyOrder InOrder and dependsOn both order the jobs: use one of them"
    ),
}
"""JobSet's CEL rules, spaces squeezed, and what we say when one refuses. An unknown rule stops the generator."""


def adopt(definitions: dict[str, Schema], schema: Schema, crd: Mapping[str, Any], seen: set[str]) -> None:
    """Correct definitions, in place, where a CRD that embeds the same type says otherwise on `DECIDED_BY_CRD`."""
    name = schema.get("$ref")
    if name is not None:
        if name in LEAVES or name in seen:
            return
        seen.add(name)
        schema = definitions[name]
    for key in DECIDED_BY_CRD:
        schema.pop(key, None)
        if key in crd:
            schema[key] = crd[key]
    for field, inner in schema.get("properties", {}).items():
        if field in crd.get("properties", {}):
            adopt(definitions, inner, crd["properties"][field], seen)
    for key in ("items", "additionalProperties"):
        if key in schema and key in crd:
            adopt(definitions, schema[key], crd[key], seen)


DECIDED_BY_CRD = ("default", "x-kubernetes-map-type")


def _spec_of(crd: Mapping[str, Any]) -> Schema:
    (version,) = (version for version in crd["spec"]["versions"] if version["name"] == "v1alpha2")
    spec: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def generate(openapi: Iterable[Mapping[str, Any]], jobset_crd: Mapping[str, Any]) -> dict[str, Schema]:
    """Return every definition that the CRDs need, by short name and sorted."""
    known: dict[str, Schema] = {
        short_name(name): schema for document in openapi for name, schema in document["components"]["schemas"].items()
    }
    definitions: dict[str, Schema] = {JOBSET_SPEC: jobset_spec(jobset_crd)}
    wanted = set(ROOTS) | references(definitions)
    while wanted:
        name = wanted.pop()
        if name in definitions:
            continue
        definitions[name] = LEAVES[name] if name in LEAVES else structural(known[name])
        if name == CLAIM:
            definitions[name]["properties"]["metadata"] = {"$ref": CLAIM_META}
            definitions[name]["required"] = ["metadata"]
        wanted |= references(definitions[name])
    adopt(definitions, definitions[JOBSET_SPEC], _without_words(_spec_of(jobset_crd)), set())
    return dict(sorted(definitions.items()))


def render(definitions: Mapping[str, Schema]) -> str:
    """Write the definitions as a file: one definition a line, so that a diff names the type that changed."""
    lines = (f"{json.dumps(name)}: {json.dumps(schema, sort_keys=True)}" for name, schema in definitions.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(arguments: list[str] | None = None) -> None:
    """Read the documents named on the command line and write `podschema.json`."""
    import yaml  # noqa: PLC0415 only this command reads YAML; importing the package must stay light

    parser = argparse.ArgumentParser(description="Make podschema.json from OpenAPI v3 documents and JobSet's CRD.")
    parser.add_argument("--openapi", nargs="+", type=Path, required=True, help="core/v1, batch/v1, autoscaling/v2")
    parser.add_argument("--jobset", type=Path, required=True, help="JobSet's CustomResourceDefinition")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    documents = [json.loads(path.read_text()) for path in options.openapi]
    options.output.write_text(render(generate(documents, yaml.safe_load(options.jobset.read_text()))))


if __name__ == "__main__":
    main()
