"""Continue. Its settings are YAML, and its servers are a list.

Source: the vendor's reference of `config.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import ENTRY_NAME, YAML, ClientFacts, DescribedClient, EntryForm
from rootsd.settings import yaml_spans
from rootsd.settings.formats import Keys


class ListingClient(DescribedClient):
    """A client that keeps its servers as a list, in which each one has a name."""

    def servers(self, text: str) -> dict[str, Any]:
        """Return the items of the list by name."""
        found = self.facts.language.values(text).get(self.facts.keys[0])
        items = [item for item in found if isinstance(item, dict)] if found else []
        return {str(item.get("name", item.get("uses", ""))): item for item in items}

    def insert(self, text: str, entry: Mapping[str, Any]) -> tuple[str, list[Keys]]:
        """Insert an item at the start of the list."""
        after, is_new = yaml_spans.insert_item(text, self.facts.keys, entry)
        return after, [self.facts.keys] if is_new else []

    def remove(self, text: str, made: Sequence[Keys]) -> str:
        """Remove our item."""
        text = yaml_spans.remove_item(text, self.facts.keys, ENTRY_NAME)
        for keys in made:
            text = yaml_spans.remove_empty(text, keys)
        return text

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the list with our item."""
        return yaml_spans.insert_item("", self.facts.keys, entry)[0].rstrip("\n")


CLIENTS = (
    ListingClient(
        ClientFacts(
            name="continue",
            title="Continue",
            places=(
                SettingsPlace(
                    ".continue/config.yaml",
                    variables=(HomeVariable("CONTINUE_GLOBAL_DIR", "config.yaml"),),
                ),
            ),
            keys=("mcpServers",),
            language=YAML,
            form=EntryForm(fixed={"name": ENTRY_NAME}),
            programs=("cn",),
            applies="at once",
        )
    ),
)
