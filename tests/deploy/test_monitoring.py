"""Alerts, dashboard and the operations page: they pass Prometheus' own tool, and name everything that
the source does, and nothing else."""

import json
import os
import re
import shutil
import subprocess

import pytest

from kit.readme import ROOT

MONITORING = os.path.join(ROOT, "deploy", "monitoring")
CODE = re.compile(r"`([a-z_-]+)`")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def promtool(*arguments):
    built = os.path.join(ROOT, "build", "tools", "promtool")
    found = shutil.which("promtool") or (built if os.path.exists(built) else None)
    assert found, "promtool is missing: sh tests/run.sh fetches it"
    done = subprocess.run([found, *arguments], cwd=MONITORING, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alerts():
    return re.findall(r"^      - alert: (\w+)$", text_of("deploy/monitoring/alerts.yaml"), re.M)


def quoted(text):
    return re.findall(r'"([a-z-]+)"', text)


def array_of(path, name):
    found = re.search(rf"{name}\[[A-Z_]*\] = {{(.*?)}};", text_of(path), re.S)
    assert found, name
    return quoted(found.group(1))


def metrics():
    return sorted(set(re.findall(r'"((?:gavel|process|leader_election)_[a-z_]+)"',
                                 text_of("health/metrics.c"))))


def events():
    """The names that follow the level in calls of log_event."""
    found = set()
    for top in ("sidecar", "health"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in (n for n in files if n.endswith(".c")):
                for match in re.finditer(r"log_event\(([^;]*);", text_of(folder, name)):
                    arguments = re.split(r"LOG_(?:TEXT|NUMBER|BOOL)\(", match.group(1))[0]
                    found |= set(quoted(arguments))
    return sorted(found)


def table(heading):
    """{name: (meaning, what to do)} of the table under that heading of the operations page."""
    part = text_of("deploy/operations.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    for row in rows:
        assert len(row) == 3 and all(cell.strip() for cell in row), row
    return {CODE.search(row[0]).group(1): row[1:] for row in rows}


STATES_C = "sidecar/election/states.c"


@pytest.mark.parametrize("heading, names", [
    ("States", lambda: array_of(STATES_C, "state_names")),
    ("Reasons", lambda: array_of(STATES_C, "reason_names")),
    ("Warnings", lambda: array_of(STATES_C, "warning_names")),
    ("Metrics", metrics),
    ("Events", events),
])
def test_the_operations_page_explains_all_that_is_said(heading, names):
    names = names()
    assert len(names) >= 5
    assert sorted(table(heading)) == sorted(names)


def test_each_alert_has_its_runbook():
    headings = re.findall(r"^### (\w+)$", text_of("deploy/operations.md"), re.M)
    assert alerts() and headings == alerts()
    for block in text_of("deploy/monitoring/alerts.yaml").split("- alert: ")[1:]:
        name = block.split()[0]
        assert "runbook:" in block and "severity:" in block and "summary:" in block
        assert name in block.split("runbook:")[1]


def test_the_rules_pass_their_tests():
    assert "SUCCESS" in promtool("check", "rules", "alerts.yaml")
    assert "SUCCESS" in promtool("test", "rules", "alerts_test.yaml")


def test_each_alert_is_made_to_fire():
    tests = text_of("deploy/monitoring/alerts_test.yaml")
    for name in alerts():
        assert re.search(rf'alertname=~?"?{name}|alertname: {name}$|alertname="{name}"', tests, re.M) \
            or re.search(rf'ALERTS{{alertname="{name}",alertstate="firing"', tests), name


def used_metrics(text):
    return {re.sub("_(bucket|sum|count)$", "", name)
            for name in re.findall(r"\b((?:gavel|process|leader_election)_[a-z_]+)\b", text)}


def test_alerts_and_dashboard_ask_for_metrics_that_exist():
    expressions = re.findall(r"expr: (.*?)\n        (?:for|labels):",
                             text_of("deploy/monitoring/alerts.yaml"), re.S)
    assert len(expressions) == len(alerts())
    used = used_metrics("\n".join(expressions))
    assert len(used) >= 8 and used <= set(metrics())
    dashboard = used_metrics("\n".join(dashboard_expressions()))
    assert len(dashboard) >= 8 and dashboard <= set(metrics())


def panels():
    dashboard = json.loads(text_of("deploy/monitoring/dashboard.json"))
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def dashboard_expressions():
    return [t["expr"] for p in panels() for t in p["targets"]]


def test_the_dashboard_is_one_that_grafana_can_import(tmp_path):
    dashboard = json.loads(text_of("deploy/monitoring/dashboard.json"))
    assert dashboard["title"] and dashboard["uid"] and dashboard["schemaVersion"] >= 36
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    ids = [p["id"] for p in panels()]
    assert len(ids) == len(set(ids)) >= 8
    covered = set()
    for panel in panels():
        assert panel["title"] and panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        g = panel["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert g["x"] + g["w"] <= 24 and not cells & covered, panel["title"]
        covered |= cells
    for expression in dashboard_expressions():
        names = set(re.findall(r"\$\{?(\w+)", expression))
        assert names <= variables | {"__rate_interval", "__range"}, expression
    # Prometheus parses each of them.
    rules = [{"record": f"x{i}", "expr": re.sub(r"\$__\w+", "5m", e).replace("$", "")}
             for i, e in enumerate(dashboard_expressions())]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "x", "rules": rules}]}))
    assert "SUCCESS" in promtool("check", "rules", str(path))
