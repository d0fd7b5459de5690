from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from trainplane.api.crds import generate as generator
from trainplane.api.crds.generate import adopt, generate, main, references, render, short_name, structural

if TYPE_CHECKING:
    from pathlib import Path

REF = "#/components/schemas/"
CORE = "io.k8s.api.core.v1."


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("io.k8s.api.core.v1.PodSpec", "core.v1.PodSpec"),
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", "resource.Quantity"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "meta.v1.Time"),
        ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intstr.IntOrString"),
        ("com.example.Other", "com.example.Other"),
    ],
)
def test_names_are_short(long: str, short: str) -> None:
    assert short_name(long) == short


def test_a_reference_is_bare_wherever_openapi_puts_it() -> None:
    expected = {"$ref": "core.v1.PodSpec"}
    assert structural({"$ref": REF + CORE + "PodSpec"}) == expected
    assert structural({"allOf": [{"$ref": REF + CORE + "PodSpec"}], "default": {}, "description": "d"}) == expected


def test_only_a_default_of_an_optional_field_is_one() -> None:
    schema = {
        "type": "object",
        "description": "words",
        "required": ["port", "name"],
        "x-kubernetes-patch-merge-key": "name",
        "properties": {
            "name": {"type": "string", "default": ""},
            "port": {"type": "integer", "format": "int32", "default": 0},
            "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "default": ""}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
        },
    }
    assert structural(schema) == {
        "type": "object",
        "required": ["name", "port"],
        "properties": {
            "name": {"type": "string"},
            "port": {"type": "integer", "format": "int32"},
            "protocol": {"type": "string", "default": "TCP"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }


def test_references_are_found_at_every_depth() -> None:
    assert references({"a": [{"$ref": "x"}], "b": {"c": {"$ref": "y"}}}) == {"x", "y"}
    assert references("text") == set()


def test_a_crd_has_the_last_word_on_defaults_and_map_types() -> None:
    definitions: dict[str, Any] = {
        "A": {"type": "object", "properties": {"s": {"type": "string", "default": ""}, "b": {"$ref": "B"}}},
        "B": {"type": "object", "properties": {"l": {"type": "array", "items": {"$ref": "C"}}, "own": {"$ref": "B"}}},
        "C": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
    }
    crd: dict[str, Any] = {
        "properties": {
            "s": {"type": "string"},
            "b": {
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    "l": {"items": {"additionalProperties": {"type": "string"}}},
                    "own": {"x-kubernetes-map-type": "atomic"},
                },
            },
        }
    }
    adopt(definitions, {"$ref": "A"}, crd, set())
    assert definitions["A"]["properties"]["s"] == {"type": "string"}
    assert definitions["B"]["x-kubernetes-map-type"] == "atomic"
    assert definitions["C"]["additionalProperties"] == {"type": "string"}


def openapi() -> dict[str, Any]:
    """Return an OpenAPI document in which every type that we need is an empty object, but for a few."""
    schemas: dict[str, Any] = {f"io.k8s.api.{name}": {"type": "object"} for name in generator.ROOTS}
    schemas["io.k8s.api.batch.v1.JobTemplateSpec"] = {
        "type": "object",
        "properties": {
            "metadata": {"$ref": REF + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
            "spec": {"$ref": REF + CORE + "PodSpec"},
        },
    }
    schemas[CORE + "PersistentVolumeClaim"] = {
        "type": "object",
        "properties": {"metadata": {"$ref": REF + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
    }
    schemas[CORE + "PodSpec"] = {
        "type": "object",
        "properties": {"cpu": {"$ref": REF + "io.k8s.apimachinery.pkg.api.resource.Quantity"}},
    }
    schemas[CORE + "Unused"] = {"type": "object"}
    return {"components": {"schemas": schemas}}


def jobset() -> dict[str, Any]:
    fixed = [{"rule": "self ==  oldSelf", "message": "Value is immutable"}]
    spec = {
        "type": "object",
        "description": "words",
        "properties": {
            "network": {"type": "object", "x-kubernetes-validations": fixed},
            "replicatedJobs": {
                "type": "array",
                "items": {"type": "object", "properties": {"template": {"type": "object"}}},
            },
            "volumeClaimPolicies": {
                "type": "array",
                "items": {"properties": {"templates": {"type": "array", "items": {"type": "object"}}}},
            },
        },
    }
    version = {"name": "v1alpha2", "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    return {"spec": {"versions": [{"name": "v1alpha1"}, version]}}


def test_generates_what_is_needed_and_nothing_else() -> None:
    found = generate([openapi()], jobset())
    assert set(found) == {
        *generator.ROOTS,
        generator.JOBSET_SPEC,
        "core.v1.PodSpec",
        "meta.v1.ObjectMeta",
        "resource.Quantity",
        generator.CLAIM_META,
    }
    assert list(found) == sorted(found)
    spec = found[generator.JOBSET_SPEC]["properties"]
    assert spec["replicatedJobs"]["items"]["properties"]["template"] == {"$ref": "batch.v1.JobTemplateSpec"}
    assert set(found["meta.v1.ObjectMeta"]["properties"]) == {
        "annotations",
        "finalizers",
        "labels",
        "name",
        "namespace",
    }


def test_words_are_our_own() -> None:
    text = render(generate([openapi()], jobset()))
    assert "words" not in text
    assert "Value is immutable" not in text
    assert "create another runtime" in text


def test_a_rule_that_we_have_no_words_for_stops_the_generator() -> None:
    crd = jobset()
    network = crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["network"]
    network["x-kubernetes-validations"] = [{"rule": "self.new", "message": "m"}]
    with pytest.raises(KeyError, match=r"self\.new"):
        generate([openapi()], crd)


def test_generating_changes_nothing_that_it_was_given() -> None:
    document, crd = openapi(), jobset()
    before = copy.deepcopy((document, crd, generator.LEAVES))
    generate([document], crd)
    assert (document, crd, generator.LEAVES) == before


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    (tmp_path / "core.json").write_text(json.dumps(openapi()))
    (tmp_path / "jobset.yaml").write_text(yaml.safe_dump(jobset()))
    output = tmp_path / "out.json"
    main(["--openapi", str(tmp_path / "core.json"), "--jobset", str(tmp_path / "jobset.yaml"), "--output", str(output)])
    assert json.loads(output.read_text()) == generate([openapi()], jobset())
    assert output.read_text().count("\n") == len(generate([openapi()], jobset())) + 2


def test_the_committed_file_is_in_the_form_that_the_generator_writes() -> None:
    text = generator.OUTPUT.read_text()
    assert render(json.loads(text)) == text
    assert "description" not in {key for schema in json.loads(text).values() for key in schema}
