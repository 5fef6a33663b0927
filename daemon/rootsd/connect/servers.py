"""Find out which servers of a client `rootsd run` can wrap, and why not the others. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from rootsd.agents.forms.client import ENTRY_NAME, EntryForm
from rootsd.core.labels import safe_label

RUN = "run"
ACP = "acp"
BRIDGE = "bridge"
HOOK = "hook"
IS_REMOTE = "it is reached over the network"
TURNED_OFF = "it is turned off, so it cannot be tried"
_ADDRESSES = ("url", "httpUrl", "serverUrl", "uri")
_REMOTE_TYPES = frozenset(("http", "https", "sse", "remote", "streamable-http", "ws"))
_BUILT_IN_TYPES = frozenset(("builtin", "frontend", "inline_python", "platform"))
# Programs that run a server somewhere else, or behind a wall of their own.
_SANDBOXES = frozenset(
    ("bwrap", "container", "docker", "firejail", "nono", "podman", "sandbox-exec", "srt", "ssh")
)
# The command `rootsd` is a shell script, and dash(1) drops variables with other names.
_PASSED_BY_SHELLS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{roots?(?::[^{}]*)?\}")


class ServerId(Struct, frozen=True):
    """The name of a server in settings, and the path of the project that alone has it, if any."""

    name: str
    project: str = ""

    @property
    def label(self) -> str:
        """The name for people. It can have any character."""
        return f"{self.name} (in {self.project})" if self.project else self.name


class ServerEntry(Struct, frozen=True):
    """One server of a client. `obstacle` is a clause that says why it cannot be wrapped, or empty.

    * `words`: the command.
    * `variables`: those that the entry sets.
    * `folder`, `env_file`: what the entry says about the working directory, and about a file with
      more variables.
    """

    server: ServerId
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    obstacle: str = ""
    folder: str = ""
    env_file: str = ""


def list_servers(form: EntryForm, entries: Mapping[ServerId, Any]) -> list[ServerEntry]:
    """Return the servers besides rootsd itself, in the order of the file."""
    found = [_server(form, server, entry) for server, entry in entries.items()]
    return [server for server in found if not is_bridge(server.words)]


def is_rootsd(words: Sequence[str]) -> bool:
    """Return whether a command is rootsd, in any installation."""
    return bool(words) and os.path.basename(words[0]) == ENTRY_NAME


def is_bridge(words: Sequence[str]) -> bool:
    """Return whether a command connects a client to rootsd."""
    return is_rootsd(words) and BRIDGE in words[1:2]


def is_wrapped(words: Sequence[str]) -> bool:
    """Return whether a command runs a server under `rootsd run`."""
    return is_rootsd(words) and RUN in words[1:2]


def is_relayed(words: Sequence[str]) -> bool:
    """Return whether a command runs an agent under `rootsd acp`."""
    return is_rootsd(words) and ACP in words[1:2]


def _server(form: EntryForm, server: ServerId, entry: object) -> ServerEntry:
    if not isinstance(entry, dict):
        return ServerEntry(server, obstacle="its entry has an unusual form")
    inner = entry
    for key in form.command_keys(entry):
        inner = entry[key]
    if any(key in inner for key in _ADDRESSES) or _text(inner, "type") in _REMOTE_TYPES:
        return ServerEntry(server, obstacle=IS_REMOTE)
    if _text(inner, "type") in _BUILT_IN_TYPES:
        return ServerEntry(server, obstacle="it is a part of the client")
    words = form.words(entry)
    if words is None:
        return ServerEntry(server, obstacle="its entry has an unusual form")
    variables = form.variables(entry)
    return ServerEntry(
        server,
        words,
        variables,
        _obstacle(entry, words, variables),
        folder=_text(inner, "cwd"),
        env_file=_text(inner, "envFile"),
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    found = entry.get(key)
    return found if isinstance(found, str) else ""


def _obstacle(entry: Mapping[str, Any], words: Sequence[str], variables: Mapping[str, str]) -> str:
    program = os.path.basename(words[0])
    if is_wrapped(words):
        return "it runs under rootsd run already"
    if is_rootsd(words):
        return "it is rootsd"
    if entry.get("enabled") is False or entry.get("disabled") is True:
        return TURNED_OFF
    if program in _SANDBOXES:
        return f"{program} runs it in an environment of its own"
    if program == "codex" and "sandbox" in words[1:2]:
        return "the sandbox of Codex runs it"
    if any(_PLACEHOLDER.search(word) for word in words):
        return "its command has a placeholder of rootsd run"
    if odd := [name for name in variables if not _PASSED_BY_SHELLS.fullmatch(name)]:
        return f"a shell would drop its variable {safe_label(odd[0])}"
    return ""
