import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import yaml
from msgspec import field

from trainplane.api import names
from trainplane.api.crds import emit
from trainplane.api.crds.__main__ import main, stale, write
from trainplane.api.crds.schema import definitions, resolve, schema_of
from trainplane.api.declaration import Envelope, Field, Rule, always, keyed
from trainplane.api.meta import ObjectMeta
from trainplane.api.tree import Tree

COMMITTED = Path(__file__).parents[3] / "manifests" / "crds"


class Wheel(Envelope, frozen=True):
    """A thing with a size."""

    __schema__: ClassVar[Field] = Field(rules=(Rule("self.size > 0", "a wheel has a size"),))

    size: Annotated[int, Field("Its size.", format="int32", minimum=1)]
    colour: Annotated[str, Field(enum=("red", "blue"), default="red")] = "red"


class Cart(Envelope, frozen=True):
    """One of each form that a field can have."""

    __schema__: ClassVar[Field] = Field("A cart.", min_properties=1)

    wheels: Annotated[list[Wheel], keyed("Its wheels.", "size", max_items=4)]
    spare: Annotated[Wheel | None, Field("One more.", rules=(Rule("self == oldSelf", "keep it"),))] = None
    load: Annotated[int | str | None, Field("How much.")] = None
    labels: Annotated[dict[str, str], Field(each=Field(max_length=9))] = field(default_factory=dict)
    env: Annotated[list[Tree], Field(list_type="atomic", each=Field(ref="core.v1.LocalObjectReference"))] = field(
        default_factory=list
    )
    optional_here: Annotated[str, Field(required=False)] = "x"
    api_version: str = always("v1")
    kind: str = always("Cart")
    metadata: ObjectMeta = ObjectMeta()


def test_a_type_becomes_its_schema() -> None:
    wheel = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "description": "Its size."},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
        "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "a wheel has a size"}],
    }
    assert schema_of(Cart) == {
        "type": "object",
        "description": "A cart.",
        "minProperties": 1,
        "required": ["wheels"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of the API that this object is written for."},
            "kind": {"type": "string", "description": "The kind of the object."},
            "metadata": {"type": "object"},
            "wheels": {
                "type": "array",
                "items": wheel,
                "maxItems": 4,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["size"],
                "description": "Its wheels.",
            },
            "spare": {
                **wheel,
                "description": "One more.",
                "x-kubernetes-validations": [
                    {"rule": "self.size > 0", "message": "a wheel has a size"},
                    {"rule": "self == oldSelf", "message": "keep it"},
                ],
            },
            "load": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
                "description": "How much.",
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}},
            "env": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"name": {"type": "string", "default": ""}},
                },
            },
            "optionalHere": {"type": "string"},
        },
    }


def test_a_type_without_a_schema_is_an_error_of_ours() -> None:
    class Odd(Envelope, frozen=True):
        """A field of a type that no CRD has."""

        value: Annotated[complex, Field()]

    with pytest.raises(TypeError, match="complex"):
        schema_of(Odd)


def test_every_reference_can_be_resolved() -> None:
    for name in definitions():
        assert "$ref" not in str(resolve({"$ref": name}))


def test_resolving_shares_nothing() -> None:
    first = resolve({"$ref": "core.v1.EnvVar"})
    first["properties"].clear()
    assert resolve({"$ref": "core.v1.EnvVar"})["properties"]


@pytest.mark.parametrize("kind", emit.KINDS, ids=lambda kind: kind.name)
def test_each_crd_says_how_its_kind_is_served(kind: emit.Kind) -> None:
    crd = emit.crd(kind)
    (version,) = crd["spec"]["versions"]
    assert crd["metadata"]["name"] == f"{kind.plural}.{names.GROUP}"
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert ("subresources" in version) == (kind.name == "TrainJob")
    assert crd["spec"]["scope"] == ("Cluster" if kind.name.startswith("Cluster") else "Namespaced")


@pytest.mark.parametrize("kind", emit.KINDS, ids=lambda kind: kind.name)
def test_every_nested_metadata_keeps_labels_and_annotations(kind: emit.Kind) -> None:
    found = list(nested(emit.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]))
    assert found
    for metadata in found:
        assert set(metadata["properties"]) == {"annotations", "finalizers", "labels", "name", "namespace"}


def nested(schema: Any) -> list[dict[str, Any]]:
    if not isinstance(schema, dict):
        return []
    own = [schema["metadata"]] if isinstance(schema.get("metadata"), dict) and "type" in schema["metadata"] else []
    return own + [found for value in schema.values() for found in nested(value)]


@pytest.mark.parametrize("kind", emit.KINDS, ids=lambda kind: kind.name)
def test_each_field_of_ours_and_each_rule_says_what_it_is(kind: emit.Kind) -> None:
    schema = emit.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"]
    for name, inner in schema["properties"]["spec"]["properties"].items():
        assert inner.get("description"), name
    assert rules(schema)
    assert all(rule["message"] for rule in rules(schema))


def rules(schema: Any) -> list[dict[str, str]]:
    if isinstance(schema, list):
        return [rule for item in schema for rule in rules(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("x-kubernetes-validations", [])
    return [*own, *(rule for value in schema.values() for rule in rules(value))]


def test_files_are_the_same_each_time_and_yaml_without_aliases() -> None:
    files = emit.files()
    emit._text.cache_clear()
    assert files == emit.files()
    for kind in emit.KINDS:
        text = files[kind.file_name]
        assert text.startswith(emit.HEADER)
        assert yaml.load(text, yaml.CSafeLoader) == emit.crd(kind)
        assert "&id" not in text


def test_a_crd_fits_into_the_annotation_of_a_plain_apply() -> None:
    """Client-side `kubectl apply` keeps the object in an annotation of at most 256 KiB."""
    for kind in emit.KINDS:
        assert len(json.dumps(emit.crd(kind))) < 200 * 1024


def test_the_committed_files_are_what_the_types_say() -> None:
    assert stale(COMMITTED) == ""


def test_check_tells_fresh_from_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "manifests"
    assert main(["--check", str(folder)]) == 1
    assert main([str(folder)]) == 0
    assert main(["--check", str(folder)]) == 0
    capsys.readouterr()

    path = folder / "crds" / "trainer.kubeflow.org_trainjobs.yaml"
    path.write_text(path.read_text().replace("singular: trainjob", "singular: job"))

    assert main(["--check", str(folder)]) == 1
    said = capsys.readouterr()
    assert "-    singular: job" in said.out
    assert "+    singular: trainjob" in said.out
    assert "make manifests" in said.err


def test_a_file_without_a_type_is_stale(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "left-behind.yaml").write_text("kind: CustomResourceDefinition\n")
    assert "left-behind.yaml" in stale(tmp_path)
