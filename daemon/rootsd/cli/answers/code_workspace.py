"""Read and write `.code-workspace` files, in which VS Code and its relatives list folders.

A repository may contain such a file, so it is not trusted: its size and its number of folders are
limited, and a link is refused, because it could lead to any file. The daemon reads each path as if
a person had typed it, shows where it really leads, and approves nothing.

Source: https://code.visualstudio.com/docs/editing/workspaces/multi-root-workspaces. The file is
JSON with comments. A relative path begins at the folder of the file.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.core.uris import looks_like_uri
from rootsd.settings.errors import NotEditable
from rootsd.settings.json_spans import parse
from rootsd.wire.decisions import MAX_ADDED_FOLDERS

SUFFIX = ".code-workspace"
MAX_BYTES = 1 << 20
_LABEL_LIMIT = 200
_NOT_IN_A_TAG = re.compile(r"[^\w.@+-]+")


class BadWorkspace(RootsdError):
    """A file that is no workspace, or cannot be read or written."""


class WorkspaceFolders(Struct, frozen=True):
    """The absolute paths of the folders in a file, and why others are left out."""

    paths: tuple[str, ...]
    warnings: tuple[str, ...]


def is_workspace_file(typed: str) -> bool:
    """Return whether a person means a workspace file, and not a folder or a URI."""
    if not typed.endswith(SUFFIX) or looks_like_uri(typed):
        return False
    return not os.path.isdir(os.path.expanduser(typed))


def read_folders(typed: str) -> WorkspaceFolders:
    """Return the folders of the workspace file. Raises BadWorkspace."""
    file = os.path.abspath(os.path.expanduser(typed))
    content = _content(file)
    entries = content.get("folders") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise _bad(file, "it has no list of folders")
    if len(entries) > MAX_ADDED_FOLDERS:
        raise _bad(file, f"it lists more than {MAX_ADDED_FOLDERS} folders")
    base = text_of(os.path.realpath(os.fsencode(os.path.dirname(file))))
    found = [_path_of(entry, number, base) for number, entry in enumerate(entries, 1)]
    paths = dict.fromkeys(each for each in found if isinstance(each, str))
    return WorkspaceFolders(
        tuple(paths), tuple(each.warning for each in found if isinstance(each, _LeftOut))
    )


def default_tag(typed: str) -> str:
    """Return a tag made of the file's name, without characters that a shell could change.

    Raises BadWorkspace if nothing is left.
    """
    name = os.path.basename(typed).removesuffix(SUFFIX)
    tag = _NOT_IN_A_TAG.sub("-", name).strip("-.")
    if not tag:
        raise BadWorkspace("the name of the file makes no tag", f"rootsd add {typed} --tag work")
    return tag


def workspace_of(paths: Sequence[str]) -> dict[str, Any]:
    """Return the content of a workspace file with these folders."""
    return {"folders": [{"path": path} for path in paths], "settings": {}}


def workspace_text(content: Mapping[str, Any]) -> str:
    """Return the text of a workspace file. It is all ASCII, and safe on a terminal."""
    return json.dumps(content, indent="\t") + "\n"


def create_file(typed: str, text: str) -> None:
    """Write a new file, and never replace one: it may have settings. Raises BadWorkspace."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(typed, flags, 0o666), "w", encoding="ascii") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise BadWorkspace(
            f"{_shown(typed)} exists already; nothing was written", f"ls -l {_shown(typed)}"
        ) from error
    except OSError as error:
        raise BadWorkspace(
            f"{_shown(typed)} cannot be written: {error.strerror}",
            f"ls -ld {_shown(os.path.dirname(os.path.abspath(typed)))}",
        ) from error


class _LeftOut(Struct, frozen=True):
    """A folder of the file that cannot be proposed."""

    warning: str


def _content(file: str) -> Any:  # noqa: ANN401 - a JSON value
    # O_NONBLOCK: a FIFO at this path must not hang the command.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    try:
        with open(os.open(file, flags), "rb") as stream:
            is_regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            raw = stream.read(MAX_BYTES + 1) if is_regular else b""
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadWorkspace(
                f"{_shown(file)} is a link, which could lead to any file",
                f"rootsd add {_shown(os.path.realpath(file))}",
            ) from error
        raise _bad(file, error.strerror or str(error)) from error
    if not is_regular:
        raise _bad(file, "it is not a regular file")
    if len(raw) > MAX_BYTES:
        raise _bad(file, f"it is larger than {MAX_BYTES} bytes")
    try:
        return parse(raw.decode()).value
    except UnicodeDecodeError as error:
        raise _bad(file, "it is not UTF-8") from error
    except NotEditable as error:
        raise _bad(file, str(error)) from error


def _path_of(entry: object, number: int, base: str) -> str | _LeftOut:
    """Return the absolute path of an entry. As in VS Code, `..` does not follow links."""
    members = entry if isinstance(entry, dict) else {}
    path, uri = members.get("path"), members.get("uri")
    if isinstance(path, str):
        found = path
    elif isinstance(uri, str):
        try:
            parts = urlsplit(uri)
        except ValueError:
            parts = None
        if parts is None or parts.scheme != "file" or parts.netloc:
            shown = safe_label(uri, _LABEL_LIMIT)
            return _LeftOut(f"{shown} is left out: it is not a folder of this computer")
        found = unquote(parts.path, errors="surrogateescape")
    else:
        return _LeftOut(f"folder {number} is left out: it has neither a path nor a uri")
    if not found or "\0" in found:
        return _LeftOut(f"folder {number} is left out: its path is not valid")
    return os.path.normpath(os.path.join(base, found))


def _bad(file: str, reason: str) -> BadWorkspace:
    return BadWorkspace(f"{_shown(file)} cannot be used: {reason}", f"ls -l {_shown(file)}")


def _shown(path: str) -> str:
    return safe_label(path, limit=None)
