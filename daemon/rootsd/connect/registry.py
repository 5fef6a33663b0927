"""Find every client in the files of `rootsd.agents`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rootsd.agents import files_with
from rootsd.agents.forms.client import ClientFacts, ServerList
from rootsd.connect.base import ListingClient, McpClient


@cache
def all_clients() -> Mapping[str, McpClient]:
    """Return the clients by name, in the order of the alphabet."""
    found: list[ClientFacts] = [each for file in files_with("clients") for each in file.clients()]
    by_name = sorted(found, key=lambda facts: facts.name)
    return {facts.name: _CLASSES[facts.list_of](facts) for facts in by_name}


_CLASSES = {ServerList.MEMBERS: McpClient, ServerList.ITEMS: ListingClient}
