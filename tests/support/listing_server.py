"""A server of both protocol eras, made with the SDK. Its tools ask the client for roots and for
input.

Run: python listing_server.py
"""

from __future__ import annotations

from typing import Annotated

import mcp_types
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from pydantic import BaseModel

server = MCPServer("listing")


class Answer(BaseModel):
    sure: bool


async def roots() -> ListRoots:
    return ListRoots()


async def sure() -> Elicit[Answer]:
    return Elicit("sure?", Answer)


@server.tool()
def show_roots(found: Annotated[mcp_types.ListRootsResult, Resolve(roots)]) -> str:
    return " ".join(str(root.uri) for root in found.roots)


async def opinion() -> Sample:
    text = mcp_types.TextContent(text="what do you think?")
    return Sample([mcp_types.SamplingMessage(role="user", content=text)], max_tokens=77)


@server.tool()
def ask_all(
    found: Annotated[mcp_types.ListRootsResult, Resolve(roots)],
    answer: Annotated[Answer, Resolve(sure)],
    thought: Annotated[mcp_types.CreateMessageResult, Resolve(opinion)],
) -> str:
    uris = " ".join(str(root.uri) for root in found.roots)
    assert isinstance(thought.content, mcp_types.TextContent)
    return f"{answer.sure} {thought.content.text} {uris}"


if __name__ == "__main__":
    server.run("stdio")
