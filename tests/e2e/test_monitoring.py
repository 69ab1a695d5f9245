"""Alerts and the Grafana dashboard of the documentation use metrics that a running server serves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, Site

PAGES = Path(__file__).resolve().parents[2] / "docs/monitoring"
METRIC = re.compile(r"\b(bouncer_\w+)(?:\{([^}]*)\})?")


@pytest.fixture(scope="module")
def served_labels(shop: Site) -> dict[str, set[str]]:
    """Return the label names of each metric of a server that judged an issue and a pull request."""
    home, browser = shop.repository("acme/measured"), shop.browser()
    number = shop.github.open_issue(home, "It breaks", "It does not work.")
    shop.slowly.open_pull(home, "Read values", f"Fixes #{number}", files={APP: BROKEN}, closes=[number])
    result: dict[str, set[str]] = {}

    def complete() -> bool:
        for family in text_string_to_metric_families(browser.get("/metrics")):
            result.setdefault(family.name, set())
            for sample in family.samples:
                result.setdefault(sample.name, set()).update(sample.labels)
        return {"bouncer_deliveries_total", "bouncer_github_calls_total"} <= set(result)

    wait(complete, 60, "the counts of all processes")
    return result


def expressions() -> list[str]:
    rules = yaml.safe_load((PAGES / "alerts.yml").read_text())["groups"][0]["rules"]
    dashboard = json.loads((PAGES / "grafana.json").read_text())
    return [
        *(rule["expr"] for rule in rules),
        *(target["expr"] for panel in dashboard["panels"] for target in panel["targets"]),
    ]


def test_every_metric_of_alerts_and_dashboard_is_served(served_labels: dict[str, set[str]]) -> None:
    used = [match for expression in expressions() for match in METRIC.findall(expression)]
    assert len(used) > 15
    assert {name for name, _ in used} <= set(served_labels)
    for name, matchers in used:
        names = set(re.findall(r"(\w+)\s*=", matchers))
        # A metric without samples yet (no promise was made) has no labels to compare.
        assert names <= served_labels[name] or not served_labels[name], name


def test_grouping_labels_are_served(served_labels: dict[str, set[str]]) -> None:
    for expression in expressions():
        for grouped, name in re.findall(r"sum by \(([^)]*)\) \(\w+\((bouncer_\w+)", expression):
            assert set(re.split(r",\s*", grouped)) <= served_labels[name], expression


def test_every_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((PAGES / "alerts.yml").read_text())["groups"][0]["rules"]
    assert all(rule["annotations"].keys() == {"summary", "action"} for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)
