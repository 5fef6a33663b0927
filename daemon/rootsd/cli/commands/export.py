"""`rootsd export`: print your decisions, to import them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation, call_or_read_store
from rootsd.cli.render import CommandResult
from rootsd.wire.decisions import EXPORT_FORMAT, RulesQuery
from rootsd.wire.projects import ProjectsQuery

SECTION = "Decide"

_PROJECT = ("path", "path_b64", "uri", "kind", "name", "tags", "verdict", "access")
_RULE = ("verdict", "pattern", "pattern_b64")


@click.command(
    "export", cls=VerbCommand, epilog="rootsd export > roots.json\nrootsd import roots.json"
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Print all decisions, names, and tags as one JSON object, for import elsewhere.

    The export holds names and paths, but no identities, so that it cannot approve anything. This
    command also works without a daemon.
    """
    listing, rules = (
        call_or_read_store(invocation, ProjectsQuery(invocation.cwd)),
        call_or_read_store(invocation, RulesQuery()),
    )
    items = [_only(item, _PROJECT) for item in listing["items"] if _is_worth_it(item)]
    extra = {
        "format": EXPORT_FORMAT,
        "rules": [_only(rule, _RULE) for rule in rules["items"]],
    }
    invocation.output.object(CommandResult(items, listing["revision"], listing["warnings"], extra))


def _is_worth_it(item: Mapping[str, Any]) -> bool:
    return item["verdict"] != "pending" or bool(item["tags"]) or bool(item["lapsed"])


def _only(item: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: item[key] for key in keys}
