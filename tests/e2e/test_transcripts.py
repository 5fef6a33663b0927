"""What clients of the older revisions said and heard, recorded, and said again to the bridge.

Each file of `transcripts/` holds what the SDK's client of that time exchanged with
`rootsd bridge`, a step a line: `client` and `server` messages, and `change` where the set became
those folders below /src. `VERSION` and `TOOLS` stand for what is the same in every revision and
grows.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from rootsd import __version__
from rootsd.mcp.tools import TOOLS
from support.bridges import bridge
from support.publishing import FakeSource, root
from support.serving import published

TRANSCRIPTS = Path(__file__).parent / "transcripts"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
FOLDERS = {
    "api": root("/src/api"),
    "new": root("/src/new"),
    "web": root("/src/web", tags=("work",)),
}

Step = dict[str, Any]


def recorded(revision: str) -> list[Step]:
    """The steps; the first line says where they come from."""
    known = {"VERSION": __version__, "TOOLS": [_as_sent(tool) for tool in TOOLS]}

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
    """A batch's answers may stand in any order (JSON-RPC 2.0, section 6)."""
    return sorted(message, key=json.dumps) if isinstance(message, list) else message


def _with_text_read(content: Step) -> Step:
    """Structured results are repeated as JSON in a text, whose spelling says nothing."""
    if content.get("type") == "text" and str(content["text"]).startswith("{"):
        return {**content, "text": json.loads(content["text"])}
    return content


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_of_that_time_hears_what_it_heard_then(revision: str) -> None:
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
                # The order of answers is free where several requests were open.
                heard = [client.hear() for _ in said]
                assert in_some_order(heard) == in_some_order(said)
        assert client.leave() == 0


def test_every_transcript_is_used() -> None:
    assert sorted(file.stem for file in TRANSCRIPTS.glob("*.jsonl")) == REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_transcript_holds_all_that_is_offered(revision: str) -> None:
    said = [step["client"] for step in recorded(revision) if "client" in step]
    methods = {each["method"] for each in said if isinstance(each, dict)}
    assert methods >= {
        "completion/complete", "initialize", "ping", "resources/list", "resources/read",
        "resources/subscribe", "resources/templates/list", "tools/call", "tools/list",
    }  # fmt: skip
    assert any(isinstance(each, list) for each in said) == (revision == "2025-03-26")
