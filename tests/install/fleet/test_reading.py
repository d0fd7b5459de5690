"""What the story stands on, without clusters: pages read as people read them, and the policies that are rendered."""

from __future__ import annotations

import yaml

from lab.paths import REPOSITORY
from tests.fleet.guide.page import Page
from tests.install.fleet.console import shape, shown
from tests.install.fleet.flows import Flow, forbidden
from tests.install.test_chart import by_name, rendered

ON = "--set=hub.enabled=true"


def test_a_terminal_is_read_with_what_was_set_before() -> None:
    page = Page("```console\n$ A=1\n$ echo 'x\n  y' $A\nx 12\n$ ls\n```\n```console\n$ pwd\n/\n```\n")
    assert [(one.script, one.printed) for one in shown(page)] == [
        ("A=1\necho 'x\n  y' $A", ("x 12",)),
        ("A=1\nls", ()),
        ("A=1\npwd", ("/",)),
    ]
    assert shape("a   east  2/2  9s") == shape("a east 1/2 10s") != shape("a west 1/2 10s")
    assert shape("2026-11-15T05:48:53.338901Z  hub") == shape("2026-11-15T05:48:54Z hub")


def test_kueues_values_are_the_settings_that_the_page_names() -> None:
    (block,) = [
        one
        for one in Page.load(REPOSITORY / "docs/multikueue.md").blocks()
        if one.language == "yaml" and not one.text.startswith("# examples/")
    ]
    values = yaml.safe_load((REPOSITORY / "examples/multikueue/kueue-values.yaml").read_text())
    config = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    named = yaml.safe_load(block.text)
    assert {key: config[key] for key in named} == named


def test_the_hubs_policies_have_the_admins_ports_and_a_switch() -> None:
    ports = ("--set=networkPolicy.apiServerPorts={6443}", "--set=hub.workerPorts={7443,8443}")
    found = by_name(rendered(ON, *ports))
    owner, front = (found["NetworkPolicy", name]["spec"] for name in ("trainplane-hub-archive", "trainplane-hub"))
    assert [[port["port"] for port in rule["ports"]] for rule in owner["egress"]] == [[53, 53], [6443], [7443, 8443]]
    assert [[port["port"] for port in rule["ports"]] for rule in front["egress"]] == [[8443], [53, 53], [6443]]
    former = by_name(rendered(ON, "--set=hub.workerPorts=null"))["NetworkPolicy", "trainplane-hub-archive"]["spec"]
    assert [port["port"] for port in former["egress"][-1]["ports"]] == [443, 6443, 8443]
    for options in ((), (ON, "--set=networkPolicy.enabled=false")):
        assert ("NetworkPolicy", "trainplane-hub") not in by_name(rendered(*options))


def test_a_connection_that_no_rule_lets_pass_is_found() -> None:
    documents = by_name(rendered(ON, "--set=networkPolicy.apiServerPorts={6443}", "--set=hub.workerPorts={6443}"))
    policies = [documents["NetworkPolicy", name] for name in ("trainplane-hub-archive", "trainplane-hub")]
    pods = [
        {"status": {"podIP": address}, "metadata": {"labels": {"app": app}}}
        for address, app in (("10.0.0.1", "trainplane-hub"), ("10.0.0.2", "trainplane-hub-archive"))
    ]
    node, other = "10.1.0.1", "10.0.0.9"
    fine = {
        Flow("UDP", "10.0.0.1", node, 53),
        Flow("TCP", "10.0.0.1", "10.0.0.2", 8443),
        Flow("TCP", "10.0.0.2", "192.0.2.1", 6443),
        Flow("TCP", node, "10.0.0.2", 8443),
        Flow("TCP", other, "10.0.0.2", 8444),
        Flow("TCP", other, node, 22),
    }
    wrong = {
        Flow("TCP", other, "10.0.0.2", 8443),
        Flow("TCP", "10.0.0.1", other, 8443),
        Flow("TCP", "10.0.0.2", "192.0.2.1", 80),
        Flow("UDP", "10.0.0.2", "192.0.2.1", 6443),
    }
    assert set(forbidden(fine | wrong, policies, pods, {node})) == wrong
