"""The servers that can be wrapped, and the reasons for the others."""

from __future__ import annotations

import pytest

from rootsd.agents.forms.client import EntryForm
from rootsd.connect.servers import ServerId, list_servers

FORM = EntryForm()
LIST = EntryForm(arguments=None)
NETWORK = "it is reached over the network"
UNUSUAL = "its entry has an unusual form"
OFF = "it is turned off, so it cannot be tried"


@pytest.mark.parametrize(
    ("entry", "obstacle"),
    [
        ({"command": "npx", "args": ["-y", "x"]}, ""),
        ({"command": "npx"}, ""),
        ({"type": "stdio", "command": "/opt/x/server"}, ""),
        ({"url": "https://example.com"}, NETWORK),
        ({"httpUrl": "https://example.com"}, NETWORK),
        ({"serverUrl": "https://example.com"}, NETWORK),
        ({"type": "sse", "command": "x"}, NETWORK),
        ({"type": ["stdio"], "command": "x"}, ""),
        ({}, UNUSUAL), ("x", UNUSUAL), (None, UNUSUAL), ({"command": 1}, UNUSUAL),
        ({"command": ""}, UNUSUAL), ({"command": "x", "args": "y"}, UNUSUAL),
        ({"command": "x", "args": [1]}, UNUSUAL),
        ({"command": "/usr/bin/docker", "args": ["run", "x"]},
         "docker runs it in an environment of its own"),
        ({"command": "codex", "args": ["sandbox", "x"]}, "the sandbox of Codex runs it"),
        ({"command": "codex", "args": ["mcp-server"]}, ""),
        ({"command": "/x/rootsd", "args": ["run", "--", "y"]}, "it runs under rootsd run already"),
        ({"command": "rootsd", "args": ["confine"]}, "it is rootsd"),
        ({"command": "x", "args": ["{root}"]}, "its command has a placeholder of rootsd run"),
        ({"command": "x", "args": ["{rooted}"]}, ""),
        ({"command": "x", "env": {"a.b": "c"}}, "a shell would drop its variable a.b"),
        ({"command": "x", "env": {"PYTHONPATH": "c"}}, ""),
        ({"command": "x", "enabled": False}, OFF), ({"command": "x", "disabled": True}, OFF),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_wrapped_has_a_reason(entry: object, obstacle: str) -> None:
    [server] = list_servers(FORM, {ServerId("x"): entry})
    assert server.obstacle == obstacle
    assert server.words or obstacle


def test_a_command_may_be_one_list() -> None:
    [server] = list_servers(
        LIST, {ServerId("x"): {"command": ["npx", "y"], "env": {"A": "b", "C": 1}}}
    )
    assert (server.words, server.variables, server.obstacle) == (("npx", "y"), {"A": "b"}, "")


def test_a_bridge_is_not_wrapped() -> None:
    bridge = {"command": "/x/rootsd", "args": ["bridge"]}
    entries = {ServerId("rootsd"): bridge, ServerId("a"): {"command": "b"}}
    assert [each.server.name for each in list_servers(FORM, entries)] == ["a"]
