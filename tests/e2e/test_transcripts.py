"""Recorded sessions of clients with older revisions, replayed to the bridge.

Each file in `transcripts/` has the messages between the SDK's client of that time and `rootsd
bridge`, one step per line: `client` and `server` messages, and `change` where the set became those
folders below /src. `VERSION` and `TOOLS` stand for values that are equal in every revision and
grow over time. The client of 2024-11-05 declares roots and never answers the question about them,
so its first call waits for a second.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from rootsd import __version__
from rootsd.mcp.tools import all_tools
from support.bridges import bridge
from support.mcp_harness import FakeSource, root
from support.threaded_publisher import published

TRANSCRIPTS = Path(__file__).parent / "transcripts"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
FOLDERS = {
    "api": root("/src/api"),
    "new": root("/src/new"),
    "web": root("/src/web", tags=("work",)),
}

Step = dict[str, Any]


def recorded(revision: str) -> list[Step]:
    """Return the steps. The first line names their source."""
    known = {"VERSION": __version__, "TOOLS": [_as_sent(tool) for tool in all_tools()]}

    def fill_in(fields: Step) -> Step:
        return {key: known.get(value, value) if isinstance(value, str) else value
                for key, value in fields.items()}  # fmt: skip

    lines = (TRANSCRIPTS / f"{revision}.jsonl").read_text().splitlines()[1:]
    return [json.loads(line, object_hook=fill_in) for line in lines]


def _as_sent(tool: Any) -> Step:  # noqa: ANN401
    sent: Step = tool.model_dump(by_alias=True, exclude_none=True, mode="json")
    return sent


def in_some_order(messages: list[Any]) -> list[str]:
    said = (json.loads(json.dumps(message), object_hook=_with_text_read) for message in messages)
    return sorted(json.dumps(_batch_in_order(message), sort_keys=True) for message in said)


def _batch_in_order(message: Any) -> Any:  # noqa: ANN401
    """Sort a batch's answers, which may be in any order (JSON-RPC 2.0, section 6)."""
    return sorted(message, key=json.dumps) if isinstance(message, list) else message


def _with_text_read(content: Step) -> Step:
    """Parse the JSON text that repeats a structured result; its spelling does not matter."""
    if content.get("type") == "text" and str(content["text"]).startswith("{"):
        return {**content, "text": json.loads(content["text"])}
    return content


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_of_an_older_revision_gets_the_recorded_answers(revision: str) -> None:
    steps = recorded(revision)
    assert steps[0]["client"]["params"]["protocolVersion"] == revision
    assert steps[1]["server"]["result"]["protocolVersion"] == revision
    with (
        published(FakeSource(FOLDERS["api"], FOLDERS["web"])) as roots,
        bridge() as client,
    ):
        for kind, group in groupby(steps, key=lambda step: next(iter(step))):
            said = [step[kind] for step in group]
            if kind == "client":
                client.say(*(json.dumps(message).encode() + b"\n" for message in said))
            elif kind == "change":
                roots.set(*(FOLDERS[name] for name in said[-1]))
            else:
                # Answers to several open requests may have any order.
                heard = [client.hear() for _ in said]
                assert in_some_order(heard) == in_some_order(said)
        assert client.leave() == 0


def test_every_transcript_is_used() -> None:
    assert sorted(file.stem for file in TRANSCRIPTS.glob("*.jsonl")) == REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_transcript_covers_everything_offered(revision: str) -> None:
    said = [step["client"] for step in recorded(revision) if "client" in step]
    methods = {each["method"] for each in said if isinstance(each, dict)}
    assert methods >= {
        "completion/complete", "initialize", "ping", "resources/list", "resources/read",
        "resources/subscribe", "resources/templates/list", "tools/call", "tools/list",
    }  # fmt: skip
    assert any(isinstance(each, list) for each in said) == (revision == "2025-03-26")
