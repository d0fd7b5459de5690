"""docs/outputs.md: its example is a TrainJob that is accepted, its figures and names are those of the code."""

from __future__ import annotations

import re

import yaml

from lab.paths import REPOSITORY
from tests.unit.render.objects import runtime
from trainplane.api import names
from trainplane.api.document import read
from trainplane.api.output import SCHEMES, read_output
from trainplane.api.trainjob import TrainJob
from trainplane.operator.progress.training import MOST_WAITING
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.output import Output

PAGE = (REPOSITORY / "docs/outputs.md").read_text()


def test_the_example_is_accepted_and_has_a_sender() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    job = read(yaml.safe_load(text), TrainJob)
    pipeline = Pipeline.default(also=[Output("image", can_ask=True)])
    assert pipeline.validate(job, None, runtime()).allowed
    sets = pipeline.render(job, runtime()).plan.pod_sets
    assert [one.name for one in sets[0].containers] == ["node", names.OUTPUT]


def test_every_scheme_is_there_and_each_uri_names_a_place() -> None:
    table = re.findall(r"^\| (`.*://.*`) \|", PAGE, re.MULTILINE)
    uris = [uri for row in table for uri in re.findall(r"`([^`]+)`", row)]
    assert {read_output(uri).scheme for uri in uris} == set(SCHEMES)


def test_names_and_figures() -> None:
    for name in (
        names.ANNOTATION_OUTPUT,
        names.ANNOTATION_OUTPUT_SECRET,
        f"{names.ANNOTATION_CLAIMS}: {names.CLAIMS_RETAIN}",
        names.OUTPUT_SENT,
        names.REASON_OUTPUT_NOT_SENT,
        names.OUTPUT,
        names.OUTPUT_MANIFEST,
        names.PATH_OUTPUT,
        f"{MOST_WAITING:,}",
    ):
        assert name in PAGE, name


def test_shipped_runtimes_with_a_claim_keep_it() -> None:
    kept = set()
    for path in (REPOSITORY / "runtimes").glob("*.yaml"):
        found = yaml.safe_load(path.read_text())
        if found["spec"]["template"]["spec"].get("volumeClaimPolicies"):
            assert found["metadata"]["annotations"][names.ANNOTATION_CLAIMS] == names.CLAIMS_RETAIN, path.name
            kept.add(found["metadata"]["labels"][names.LABEL_FRAMEWORK])
    assert kept == {"torchtune"}
