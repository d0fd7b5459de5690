"""docs/data.md says what the initializers' program knows: schemes, variables, causes; its example is a TrainJob."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import yaml

from lab.paths import REPOSITORY
from trainplane.api import names
from trainplane.client.submission.sources import write_initializer
from trainplane.explain.fetching import CAUSES
from trainplane.initializers import errors
from trainplane.initializers.outputs.manifest import FINAL
from trainplane.initializers.outputs.program import Order
from trainplane.initializers.request import HUB_MODEL_PATTERNS, Limits, read_request
from trainplane.initializers.schemes import OUTPUT_SCHEMES, SCHEMES, open_source
from trainplane.initializers.source import Source

PAGE = (REPOSITORY / "docs/data.md").read_text()
SOURCES = "".join(path.read_text() for path in (REPOSITORY / "src/trainplane/initializers").rglob("*.py"))


def rows(title: str) -> list[list[str]]:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_schemes_are_those_of_the_table() -> None:
    assert [row[0].strip("`:/") for row in rows("Where from")] == list(SCHEMES)


@pytest.mark.parametrize("row", rows("Where from"), ids=lambda row: row[0])
def test_the_examples_are_understood(row: list[str]) -> None:
    for uri in re.findall(r"`([^`]+)`", row[2]):
        env = {"STORAGE_URI": uri.replace("<64 digits>", "0" * 64), "AZURE_STORAGE_ACCOUNT_NAME": "account"}
        assert isinstance(open_source(read_request("dataset", env)), Source)


def test_the_variables_are_read_and_their_defaults_are_true() -> None:
    named = [name for row in rows("Variables") for name in re.findall(r"`([A-Z_]+)`", row[0])]
    for name in named:
        assert f'"{name}"' in SOURCES or name.lower() in {one.name for one in fields(Limits)}, name
    text = " ".join(" ".join(row) for row in rows("Variables"))
    for default in (Limits.parallel, Limits.part_mib, Limits.retry_seconds, Limits.stall_seconds, Limits.max_files):
        assert f"({default}" in text
    assert ",".join(HUB_MODEL_PATTERNS) in text


def test_what_sending_takes_is_said() -> None:
    defaults = {field.name: field.default for field in fields(Order)}
    for name, variable in (("settle_seconds", "SETTLE_SECONDS"), ("wait_seconds", "OUTPUT_WAIT_SECONDS")):
        (row,) = [row for row in rows("Sending") if f"`{variable}`" in row[0]]
        assert f"({defaults[name]})" in row[1]
    for row in rows("Sending"):
        assert row[0].replace("`", '"') in SOURCES
    section = PAGE.partition("\n## Sending\n")[2]
    assert [scheme for scheme in OUTPUT_SCHEMES if f"`{scheme}://`" not in section] == []
    assert FINAL in section


def test_the_causes_are_those_that_a_step_can_end_with() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.InitializerError) and kind is not errors.InitializerError
    ]
    said = {row[0].strip("`"): int(row[1]) for row in rows("When it fails")}
    assert said == {kind("x").cause: kind("x").exit_code for kind in kinds}
    assert {row[0].strip("`"): row[3][1:].partition("]")[0] for row in rows("When it fails")} == CAUSES


def test_the_python_has_a_type_for_each_scheme_and_they_are_written() -> None:
    section = PAGE.partition("\n## From Python\n")[2].partition("\n## ")[0]
    (text,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(text, scope)  # noqa: S102 the page's own lines
    trees = [write_initializer(one) for one in scope["initializers"]]
    schemes = {part["storageUri"].partition(":")[0] for tree in trees for part in tree.values()}
    assert schemes == set(SCHEMES) - {"http"}


def test_the_example_is_a_trainjob_whose_sources_are_known() -> None:
    text, waiting = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    metadata = yaml.safe_load(waiting)["metadata"]
    assert (list(metadata["annotations"]), list(metadata["labels"])) == ([names.ANNOTATION_AFTER], [names.LABEL_QUEUE])
    job = yaml.safe_load(text)
    for what, source in job["spec"]["initializer"].items():
        env = {one["name"]: one["value"] for one in source.get("env", ())}
        assert read_request(what, {**env, "STORAGE_URI": source["storageUri"]}).scheme in SCHEMES
