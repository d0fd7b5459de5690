"""docs/references, as far as it is written from the code: every field, setting, flag, metric, event and reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from docs import fields, metrics, names, settings
from docs.executed import ROOT
from trainplane.api import names as known

if TYPE_CHECKING:
    from types import ModuleType

API = (ROOT / "docs/references/api.md").read_text()


@pytest.mark.parametrize("module", [fields, metrics, names, settings])
def test_the_page_is_as_the_code_is(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(["--check"]) == 0, capsys.readouterr().err


def described(schema: Any, path: str = "") -> list[str]:
    """Return the fields of a schema that we describe: others' types have no words of ours."""
    found = []
    for name, inner in schema.get("properties", {}).items():
        if "description" in inner and name not in {"apiVersion", "kind"}:
            found += [
                f"{path}{name}",
                *described(inner, f"{path}{name}."),
                *described(inner.get("items", {}), f"{path}{name}[]."),
            ]
    return found


@pytest.mark.parametrize("kind", ["trainjobs", "trainingruntimes", "clustertrainingruntimes"])
def test_every_field_of_a_crd_is_told(kind: str) -> None:
    crd = yaml.load((ROOT / f"manifests/crds/trainer.kubeflow.org_{kind}.yaml").read_text(), yaml.CSafeLoader)
    paths = described(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    assert len(paths) > 15
    told = set(re.findall(r"^\| `(\w+)` \|", API, re.MULTILINE))
    assert [path for path in paths if path.rpartition(".")[2] not in told] == []


def test_a_field_says_its_bounds() -> None:
    (row,) = re.findall(r"^\| `numNodes` \| integer \| How many nodes train.*", API, re.MULTILINE)
    assert row.endswith("*At most 100000; fixed.* |")


def test_every_reason_and_event_is_told() -> None:
    page = names.write_page()
    reasons = [value for name, value in vars(known).items() if name.startswith(("REASON_", "EVENT_"))]
    assert len(reasons) > 8
    assert [one for one in reasons if f"| `{one}` |" not in page] == []
    assert "| `JobSetCreated` | created JobSet … for … pod" in page


def test_a_name_without_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "words_below", lambda module: dict.fromkeys(vars(module), ""))
    with pytest.raises(ValueError, match="no words below these"):
        names.write_page()


def test_flags_of_both_programs_are_told_and_hidden_ones_are_not() -> None:
    page = settings.write_page()
    assert {"`--watch-namespace`", "`--keep-total-bytes`", "`statusServer.port`"} <= set(re.findall(r"`[^`]+`", page))
    assert "--zap-time-encoding" not in page


def test_a_metric_has_its_labels() -> None:
    page = metrics.write_page()
    assert "| `trainplane_trainjobs` | gauge | `namespace`, `runtime`, `state` |" in page
    assert "| `rest_client_requests_total` | counter | `code`, `method`, `host` |" in page
