"""The workflows of GitHub Actions: pinned actions, few permissions, and stages that exist.

CI checks them against GitHub's schema, too; see the stage "the workflows" of `.ci/run`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

TOP = Path(__file__).parent.parent
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))
# GitHub's own, and those that CONTRIBUTING.md names.
PUBLISHERS = ("actions/", "pypa/", "cachix/")
# What a job of release.yml may write, and nothing else may.
RELEASE_RIGHTS = {
    "build": {"contents": "read"},
    "attest": {"attestations": "write", "id-token": "write"},
    "index": {"id-token": "write"},
    "page": {"contents": "write"},
}

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = YAML(typ="safe", pure=True).load(path)
    return document


def _steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def _loose(text: str) -> list[str]:
    """Return the actions that are not pinned to a commit with its version beside it."""
    used = re.findall(r"uses: (.*)", text)
    return [
        action
        for action in used
        if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action)
        or not action.startswith(PUBLISHERS)
    ]


@every_workflow
def test_actions_are_pinned_to_commits(path: Path) -> None:
    text = path.read_text()
    assert text.count("uses: ") > 0
    assert _loose(text) == []


@pytest.mark.parametrize(
    "action", ["actions/checkout@v7", f"somebody/else@{'a' * 40}  # v1.0.0", f"pypa/x@{'a' * 40}"]
)
def test_a_loose_action_is_found(action: str) -> None:
    assert _loose(f"      - uses: {action}\n") == [action]


def test_one_action_has_one_version() -> None:
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, pin in re.findall(r"uses: ([^@]+)@(.*)", path.read_text()):
            pins.setdefault(name, set()).add(pin)
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


@every_workflow
def test_a_job_reads_the_repository_and_writes_nothing(path: Path) -> None:
    workflow = _read(path)
    given = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    if path.stem == "release":
        assert workflow["permissions"] == {}
        assert given == RELEASE_RIGHTS
    else:
        assert workflow["permissions"] == {"contents": "read"}
        assert set(given.values()) == {None}


@every_workflow
def test_no_step_finds_a_token_in_the_checkout_or_hangs_for_hours(path: Path) -> None:
    workflow = _read(path)
    for step in _steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert all(job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())


@every_workflow
def test_scripts_parse_and_take_no_expressions(path: Path) -> None:
    for step in _steps(_read(path)):
        script = step.get("run", "")
        assert "${{" not in script, "an expression in a script runs as code; use env"
        subprocess.run(["bash", "-n", "-c", script], check=True)


def test_every_stage_that_a_workflow_names_is_in_the_script() -> None:
    stages = re.findall(r'^run "(.*?)"', (TOP / ".ci" / "run").read_text(), re.MULTILINE)
    linux = _read(TOP / ".github/workflows/linux.yml")
    named = linux["jobs"]["dependencies"]["strategy"]["matrix"]["stage"]
    for path in WORKFLOWS:
        for words in re.findall(r"bash \.ci/run (.*)", path.read_text()):
            named += [word for word in shlex.split(words) if word != "$STAGE"]
    assert len(named) > 3
    assert set(named) <= set(stages)


def test_a_misspelled_stage_of_the_script_fails() -> None:
    run = subprocess.run(
        ["bash", TOP / ".ci" / "run", "the oldest dependancies"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.startswith("no such stage: the oldest dependancies\n")


def test_linux_tests_every_python_that_the_classifiers_name() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    claimed = {
        line.rpartition(" :: ")[2] for line in project["classifiers"] if " :: Python :: 3." in line
    }
    matrix = _read(TOP / ".github/workflows/linux.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert claimed <= set(matrix["python"])
