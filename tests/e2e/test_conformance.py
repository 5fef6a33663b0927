"""The public conformance suite against the server object over HTTP, stable and alpha.

Every scenario runs. A scenario that is not listed below passes completely. A listed one fails for
the given reason, or in the listed checks if others of its checks apply. A listed check that passes
fails the test, so the lists stay true.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import node_packages
from support.sizes import Sizes

HANG_GUARD_S = 300
# The newer one has all scenarios of the other, some in another version.
SUITES = ("stable", "alpha")
SERVER = Path(__file__).parent.parent / "support" / "http_server.py"
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")

TEST_TOOLS = "calls a tool that the suite wants a server to have for its sake (test_…)"
TEST_RESOURCES = "reads a resource that the suite wants a server to have for its sake (test://…)"
NO_PROMPTS = "rootsd has no prompts"
NO_LOGGING = "rootsd does not offer logging, which 2026-07-28 deprecates"
NO_REQUESTS = "rootsd asks its clients for nothing: no sampling, no elicitation, no roots"
NO_TASKS = "rootsd does not offer the tasks extension"
NO_HEADERS = "needs a tool with x-mcp-header annotations, of which rootsd has none"

# Scenario -> the reason why none of its relevant checks applies.
NOT_APPLICABLE: Mapping[str, str] = {
    "completion-complete": "completes the argument of a prompt; " + NO_PROMPTS,
    "elicitation-sep1034-defaults": NO_REQUESTS,
    "elicitation-sep1330-enums": NO_REQUESTS,
    "http-custom-header-server-validation": NO_HEADERS,
    "input-required-result-basic-elicitation": NO_REQUESTS,
    "input-required-result-basic-list-roots": NO_REQUESTS,
    "input-required-result-basic-sampling": NO_REQUESTS,
    "input-required-result-capability-check": NO_REQUESTS,
    "input-required-result-multi-round": NO_REQUESTS,
    "input-required-result-multiple-input-requests": NO_REQUESTS,
    "input-required-result-non-tool-request": NO_REQUESTS,
    "input-required-result-request-state": NO_REQUESTS,
    "input-required-result-result-type": NO_REQUESTS,
    "input-required-result-tampered-state": NO_REQUESTS,
    "json-schema-2020-12": TEST_TOOLS,
    "logging-set-level": NO_LOGGING,
    "prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args": NO_PROMPTS,
    "prompts-get-with-image": NO_PROMPTS,
    "prompts-list": NO_PROMPTS,
    "resources-read-binary": TEST_RESOURCES,
    "resources-read-text": TEST_RESOURCES,
    "resources-subscribe": TEST_RESOURCES,
    "resources-templates-read": TEST_RESOURCES,
    "resources-unsubscribe": TEST_RESOURCES,
    "tasks-capability-negotiation": NO_TASKS,
    "tasks-dispatch-and-envelope": NO_TASKS,
    "tasks-lifecycle": NO_TASKS,
    "tasks-mrtr-composition": NO_TASKS,
    "tasks-mrtr-input": NO_TASKS,
    "tasks-request-headers": NO_TASKS,
    "tasks-request-state-removal": NO_TASKS,
    "tasks-required-task-error": NO_TASKS,
    "tasks-wire-fields": NO_TASKS,
    "tools-call-audio": TEST_TOOLS,
    "tools-call-elicitation": TEST_TOOLS,
    "tools-call-embedded-resource": TEST_TOOLS,
    "tools-call-error": TEST_TOOLS,
    "tools-call-image": TEST_TOOLS,
    "tools-call-mixed-content": TEST_TOOLS,
    "tools-call-sampling": TEST_TOOLS,
    "tools-call-simple-text": TEST_TOOLS,
    "tools-call-with-logging": TEST_TOOLS,
    "tools-call-with-progress": TEST_TOOLS,
}
# Check -> the reason, in scenarios whose other checks apply and pass.
PARTLY: Mapping[str, Mapping[str, str]] = {
    "caching": {"sep-2549-prompts-list-caching-hints": NO_PROMPTS},
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability": TEST_TOOLS,
        "sep-2575-missing-capability-http-400": TEST_TOOLS,
        "sep-2575-http-server-no-independent-requests-on-stream": TEST_TOOLS,
        "sep-2575-server-no-log-without-loglevel": TEST_TOOLS,
    },
}


@contextmanager
def served() -> Iterator[str]:
    """Return the URL of the server object. `test_server.py` checks that the daemon uses the same
    one.
    """
    process = subprocess.Popen([sys.executable, SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=HANG_GUARD_S)


def failures(suite: str, url: str, results: Path) -> dict[str, set[str]]:
    """Return every scenario that ran, with its failed checks."""
    program = (
        node_packages.packages() / "node_modules" / f"conformance-{suite}" / "dist" / "index.js"
    )
    words = [str(node_packages.node()), str(program), "server", "--url", url, "--suite", "all"]
    done = subprocess.run(
        [*words, "-o", str(results)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
    )
    found: dict[str, set[str]] = {}
    for file in results.glob("*/checks.json"):
        named = _FOLDER.fullmatch(file.parent.name)
        assert named, file
        checks = json.loads(file.read_text())
        found[named["scenario"]] = {
            check["id"] for check in checks if check["status"] == "FAILURE"
        }
    assert len(found) > 30, done.stdout + done.stderr
    return found


@pytest.mark.needs("npm")
def test_every_scenario_that_applies_passes_and_the_others_are_listed(
    tmp_path: Path, sizes: Sizes
) -> None:
    for suite in sizes.pick(test=("alpha",), check=SUITES, soak=SUITES):
        with served() as url:
            found = failures(suite, url, tmp_path / suite)
        for scenario, failed in found.items():
            if scenario in NOT_APPLICABLE:
                assert failed, f"{scenario} passes: take it off the list"
            elif scenario in PARTLY:
                assert failed == PARTLY[scenario].keys(), scenario
            else:
                assert failed == set(), scenario
        assert {"server-initialize", "ping", "tools-list", "resources-list"} <= found.keys()


def test_each_check_is_listed_once() -> None:
    assert not NOT_APPLICABLE.keys() & PARTLY.keys()
