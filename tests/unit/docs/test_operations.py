"""docs/operations.md: every setting with its default, every metric, every alert; nothing that is no longer there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
import yaml

from docs.metrics import hub_registry, name_of, operator_registry
from tests.fenced import blocks
from trainplane.api.configuration import Configuration, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry

ROOT = Path(__file__).parents[3]
PATH = ROOT / "docs/operations.md"
PAGE = PATH.read_text()


def section(title: str) -> str:
    """Return the text below a heading, up to the next one."""
    (found,) = re.findall(rf"^#+ {title}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(title: str) -> dict[str, str]:
    """Return the first two cells of a section's table; the first is a name."""
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", section(title), re.MULTILINE))


# -- settings


def settings(kind: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(kind):
        path = prefix + field.encode_name
        section_of = [one for one in (field.type, *get_args(field.type)) if isinstance(one, type)]
        inner = [one for one in section_of if issubclass(one, Section)]
        if field.default is None and inner:
            yield path, "`null`"
        if inner:
            yield from settings(inner[0], f"{path}.")
        elif field.encode_name not in {"apiVersion", "kind"}:
            yield path, f"`{json.dumps(default(field))}`"


def default(field: Any) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def test_every_setting_stands_there_with_its_default() -> None:
    expected = dict(settings(Configuration))
    assert len(expected) > 25
    assert rows("Settings") == expected


# -- metrics


def families(registry: CollectorRegistry) -> set[str]:
    return {name_of(one) for one in registry.collect()}


def test_every_metric_of_the_operator_stands_there() -> None:
    assert rows("Operator").keys() == families(operator_registry())


def test_every_metric_of_the_hub_stands_there() -> None:
    assert rows("Hub").keys() == families(hub_registry())


# -- alerts, commands, places


def test_every_alert_of_the_hub_stands_there() -> None:
    tree = yaml.safe_load((ROOT / "manifests/hub/alerts.yaml").read_text())
    there = {rule["alert"] for group in tree["spec"]["groups"] for rule in group["rules"]}
    assert rows("Alerts of the hub").keys() == there


def test_what_is_deleted_at_an_uninstall_is_what_is_installed() -> None:
    (commands,) = blocks(PATH, "sh")
    named = set(re.findall(r"\S+\.trainer\.kubeflow\.org$", commands, re.MULTILINE))
    files = [ROOT / "manifests/operator/webhooks.yaml", ROOT / "manifests/operator/kueue-policy.yaml"]
    there = {tree["metadata"]["name"] for file in files for tree in yaml.safe_load_all(file.read_text())}
    assert named == there


def test_tests_and_manifests_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:tests|manifests|benchmarks)/[\w./-]+)`", PAGE)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", PAGE))
def test_links_lead_somewhere(target: str) -> None:
    assert (PATH.parent / target).exists()


def test_figures_of_the_bench_are_those_of_its_page() -> None:
    page = (ROOT / "docs/architecture/operator.md").read_text().partition("### The burst")[2]
    told = re.findall(r"^\| (?:jobs/s|RSS|JobSet completed|CPU of .* until the JobSet).*\|$", page, re.MULTILINE)
    ours = [row.split("|")[4].split()[0].strip("*") for row in told]
    assert len(ours) == 5
    rows = section("Sizing").partition("|---|")[2]
    assert all(f"| {figure} " in rows for figure in ours), ours
