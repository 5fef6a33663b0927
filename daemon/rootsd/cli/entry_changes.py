"""Say how the roots of a client entry differ from those that version 0.1.0 gave it. Pure.

An entry is the command of a bridge or of a run proxy. The meaning of these words changed after
0.1.0:

* `rootsd run` narrowed its roots by the folders that the client has open, or else by the working
  directory. If no root contained that directory, it gave every root. Now it gives the workspace of
  the working directory, and the client's folders narrow only with `--client-roots`.
* The focus narrowed `rootsd run` without `--only`. Now it does so only if no project contains the
  working directory.
* `--only cwd` took the root that contains the working directory at the moment. Now it keeps the
  project with which the session began, so that no larger root takes the place of a denied one.
* `--only focus` was the name of a root. Now it is the tag of the focus.

An entry with a flag that 0.1.0 did not have is new, so nothing changed for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

_RUN, _BRIDGE = "run", "bridge"
_ONLY, _CLIENT_ROOTS = "--only", "--client-roots"
_CWD, _FOCUS, _TAG = "cwd", "focus", "tag:"
_WITH_VALUE = {
    _RUN: frozenset((_ONLY, _CLIENT_ROOTS, "--env", "--name")),
    _BRIDGE: frozenset((_ONLY, "--client")),
}
_PLAIN = {_RUN: frozenset(("--advisory-access",)), _BRIDGE: frozenset(("--any-uri",))}
_ALL_ROOTS = "{roots}"
_NAMED_ROOT = re.compile(r"\{root:([^{}]+)\}")

_WORKSPACE = (
    "in an approved project, the worktrees of that root, the roots that share a tag with it,"
    " and every root that you approve while it runs"
)
_WHOLE_ROOT = "the whole root, even if the client has only a folder in it open"
_NO_FALLBACK = "in a project that is not approved, no root until you approve one, instead of all"
_NO_CLIENT_FOLDERS = "no roots that the client has open outside the workspace"
_ALL_CLOSED = "no root while the client has no folder open any more"
_ALL_OF_ONLY = "all roots that --only selects, even if it starts in one of them"
_NOT_OUTER = "no larger root in place of one that was denied or replaced"
_BESIDE_FOCUS = "in a project, roots without the tag of the focus, too"
_NEW_FOCUS = "the roots with the tag of the focus, instead of a root with the name focus"


class PublishedFacts(Struct, frozen=True):
    """The facts about the published roots on which the difference for an entry depends.

    `renamed` has the new name of each root by its stored name. `with_colon` are the names of the
    roots whose path contains a colon. `focus` is the tag of the focus, or None. `wall` says what
    puts servers behind the wall, or is empty.
    """

    renamed: Mapping[str, str]
    with_colon: Sequence[str] = ()
    focus: str | None = None
    wall: str = ""


class EntryChange(Struct, frozen=True):
    """What an entry gets now and did not get from 0.1.0 (`more`), and the reverse (`less`)."""

    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()


class _OldOptions(Struct, frozen=True):
    """The options of an entry that 0.1.0 understood.

    `joined` are the variables whose value joins all roots. `named` are the roots that the command
    or a variable names.
    """

    only: tuple[str, ...] = ()
    client_roots: str = ""
    joined: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def change_since_0_1_0(words: Sequence[str], facts: PublishedFacts) -> EntryChange | None:
    """Return how the roots of the entry with the command `words` changed; None if they did not."""
    verb = words[1] if len(words) > 1 else ""
    if verb not in _WITH_VALUE or (options := _parse(verb, words[2:])) is None:
        return None
    found = EntryChange(*_of_names(options, facts))
    if verb == _RUN:
        more, less = _of_run(options, facts)
        found = EntryChange((*found.more, *more), (*found.less, *less))
    return found if found.more or found.less else None


def _parse(verb: str, words: Sequence[str]) -> _OldOptions | None:
    """Return the options before the server of an entry; None for words that 0.1.0 refused."""
    only: list[str] = []
    variables: list[str] = []
    client_roots = ""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        flag, equals, value = rest.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if flag in _PLAIN[verb] and not equals:
            continue
        if flag not in _WITH_VALUE[verb]:
            return None
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        if flag == _ONLY:
            only.append(value)
        elif flag == _CLIENT_ROOTS:
            client_roots = value
        elif flag == "--env":
            variables.append(value)
    joined = tuple(each.partition("=")[0] for each in variables if _ALL_ROOTS in each)
    named = tuple(name for text in (*variables, *rest) for name in _NAMED_ROOT.findall(text))
    return _OldOptions(tuple(only), client_roots, joined, named)


def _of_names(
    options: _OldOptions, facts: PublishedFacts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    more = [_NEW_FOCUS] if _FOCUS in options.only else []
    less = [_NOT_OUTER] if _CWD in options.only else []
    less += [
        f"no root with the name {name}: its name is now {facts.renamed[name]}"
        for name in dict.fromkeys((*options.only, *options.named))
        if name in facts.renamed
    ]
    return tuple(more), tuple(less)


def _of_run(
    options: _OldOptions, facts: PublishedFacts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    more: list[str] = []
    less: list[str] = []
    match options.client_roots:
        case "":
            more += [_ALL_OF_ONLY if options.only else _WORKSPACE, _WHOLE_ROOT]
            less += [] if options.only else [_NO_FALLBACK, _NO_CLIENT_FOLDERS]
        case "auto":
            more += [_ALL_OF_ONLY if options.only else _WORKSPACE]
            less += [] if options.only else [_NO_FALLBACK, _NO_CLIENT_FOLDERS]
            less += [_ALL_CLOSED]
        case "narrow" if not options.only:
            less += [_NO_CLIENT_FOLDERS]
        case _:
            pass
    if facts.focus is not None and not options.only and options.client_roots != "override":
        more.append(_BESIDE_FOCUS)
    if _is_one_root(options.only):
        more = [sentence for sentence in more if sentence != _ALL_OF_ONLY]
    for variable in options.joined:
        less += [f"not {name} in {variable}: its path has a colon" for name in facts.with_colon]
    if facts.wall:
        more.append("read-only roots, and roots with a denied project in them, which is masked")
        less.append(f"no other file of yours: it runs behind the wall ({facts.wall})")
    return tuple(more), tuple(less)


def _is_one_root(only: Sequence[str]) -> bool:
    """Return whether `--only` can select one root at most."""
    return len(only) == 1 and only[0] != _FOCUS and not only[0].startswith(_TAG)
