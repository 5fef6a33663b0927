"""Complete verbs, flags, and arguments for shells; projects come from the daemon.

Each completion sends at most one query, with a short timeout, because a person is waiting at the
prompt. If no daemon answers, there are no candidates and no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from rootsd.cli.options.remote import is_remote
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.projects import ProjectsQuery, Selection
from rootsd.wire.request import ControlRequest, encode_request

COMPLETION_TIMEOUT_S = 1.0
# Words that no shell splits or expands. A project with any other name is completed by its id.
_PLAIN = r"[A-Za-z0-9_][A-Za-z0-9._/@+-]*"
_GLOB = r"[*?\[]"
_PATH_STARTS = (".", "/", "~")

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_words(root: click.Command, words: Sequence[str], obj: object) -> list[list[str]]:
    """Return the candidates for the last of `words`, which is incomplete; none for invalid words.

    Each candidate is a kind, a word, and an explanation. The kind is `plain`, or `file` or `dir`
    to have the shell complete paths itself.
    """
    *before, last = words or ("",)
    completion = ShellComplete(root, {"obj": obj}, "rootsd", "")
    try:
        items = completion.get_completions(list(before), last)
    except (click.ClickException, RootsdError):
        return []
    return [[item.type, item.value, _safe_help(item.help)] for item in items]


def folders(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Have the shell complete folders."""
    del param
    # Those of this machine mean nothing on another one.
    return [] if is_remote(context) else [CompletionItem(typed, type="dir")]


def files(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Have the shell complete files and folders."""
    del context, param
    return [CompletionItem(typed, type="file")]


def projects(select: Selection = Selection.ALL, *extra: str) -> Completer:
    """Return a completer for the projects in `select`, and for folders if a path was begun."""

    def complete(
        context: click.Context, param: click.Parameter, typed: str
    ) -> list[CompletionItem]:
        if is_remote(context):
            return []
        if typed.startswith(_PATH_STARTS):
            return folders(context, param, typed)
        given = context.params.get(str(param.name)) or ()
        words = [CompletionItem(word) for word in extra if word.startswith(typed)]
        found = {} if re.search(_GLOB, typed) else _names(_items(select), typed)
        return words + [
            CompletionItem(name, help=where) for name, where in found.items() if name not in given
        ]

    return complete


def projects_or_files(
    context: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete projects, or files if a path was begun or no project fits."""
    found = [] if typed.startswith(_PATH_STARTS) else projects()(context, param, typed)
    return found or files(context, param, typed)


def tags(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the tags of projects."""
    del param
    if is_remote(context):
        return []
    return [CompletionItem(tag) for tag in _tags() if tag.startswith(typed)]


def scopes(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the values of `--only`: a root, `tag:T`, `focus`, or `cwd`."""
    if typed.startswith("tag:"):
        return tag_scopes(context, param, typed)
    return projects(Selection.PUBLISHED, "cwd", "focus", "tag:")(context, param, typed)


def tag_scopes(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete `tag:T`."""
    del context, param
    return [CompletionItem(f"tag:{tag}") for tag in _tags() if f"tag:{tag}".startswith(typed)]


def sync_scopes(
    context: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete `tag:T` and `focus`."""
    focus = [CompletionItem("focus")] if "focus".startswith(typed) else []
    return focus + tag_scopes(context, param, typed)


def parents(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the parents that the daemon watches; folders if none matches."""
    del param
    if is_remote(context):
        return []
    from rootsd.wire.daemon import StatusQuery

    watched = _query(StatusQuery()).get("parents", ())
    paths = [str(parent["path"]) for parent in watched]
    fitting = [path for path in paths if path.startswith(typed) and re.fullmatch(_PLAIN, path[1:])]
    return [CompletionItem(path) for path in fitting] or [CompletionItem(typed, type="dir")]


def rules(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the numbers of rules, with verdict and pattern as explanation."""
    del context, param
    from rootsd.wire.decisions import RulesQuery

    return [
        CompletionItem(str(rule["number"]), help=f"{rule['verdict']} {rule['pattern'] or ''}")
        for rule in _query(RulesQuery()).get("items", ())
        if str(rule["number"]).startswith(typed)
    ]


def agents(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the programs of agents that have a profile behind the wall."""
    del context, param
    from rootsd.agents import files_with

    found = sorted((agent.PROGRAMS[0], agent.LABEL) for agent in files_with("state"))
    return [CompletionItem(name, help=label) for name, label in found if name.startswith(typed)]


refs_argument = click.argument(
    "refs", nargs=-1, required=True, metavar="REF...", shell_complete=projects()
)


def word_for(item: Mapping[str, Any]) -> str:
    """Return the word to type for a project: its name if it needs no quotes, or else its id."""
    return str(item["name"] if re.fullmatch(_PLAIN, item["name"]) else item["id"])


def config_keys(
    context: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete the keys of config.toml that a command can set."""
    del context, param
    from rootsd.config.reference import settable_keys

    return [
        CompletionItem(key.full_name, help=key.description.replace("`", ""))
        for key in settable_keys()
        if key.full_name.startswith(typed)
    ]


def config_names(
    context: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete the tables and keys of config.toml."""
    del context, param
    from rootsd.config.reference import tables

    names = {table.name: table.description for table in tables()}
    names |= {key.full_name: key.description for table in tables() for key in table.keys}
    return [
        CompletionItem(name, help=what.replace("`", ""))
        for name, what in names.items()
        if name.startswith(typed)
    ]


def config_values(
    context: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete the values of the key before, if they can be listed; else files."""
    from rootsd.config.reference import settable_keys

    named = [key for key in settable_keys() if key.full_name == context.params.get("key")]
    if not named:
        return []
    [key] = named
    if not key.words:
        return files(context, param, typed) if key.is_list else []
    return [CompletionItem(word) for word in key.words if word.startswith(typed)]


def _items(select: Selection) -> Sequence[dict[str, Any]]:
    query = ProjectsQuery(cwd="/", select=select)
    items: list[dict[str, Any]] = _query(query).get("items", [])
    return items


def _names(items: Sequence[dict[str, Any]], typed: str) -> dict[str, str]:
    """Return the word to type for each matching project, with its verdict and path."""
    named = ((word_for(item), item) for item in items)
    return {
        name: f"{item['verdict']} {item['path'] or item['uri'] or ''}".strip()
        for name, item in named
        if name.startswith(typed)
    }


def _tags() -> list[str]:
    return sorted({tag for item in _items(Selection.ALL) for tag in item["tags"]})


def _query(request: ControlRequest) -> dict[str, Any]:
    from rootsd.link import rpc

    try:
        with rpc.connect_control() as channel:
            channel.settimeout(COMPLETION_TIMEOUT_S)
            return rpc.ask(channel, *encode_request(request))
    except RootsdError:
        return {}


def _safe_help(text: str | None) -> str:
    return safe_label(text, limit=None) if text else ""
