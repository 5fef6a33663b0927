"""The published set as JSON: the shapes that clients see, in each place where they see it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

from rootsd.core.labels import safe_json, safe_label
from rootsd.core.model import Access, Published, Root
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import Uris, is_folder, mcp_roots
from rootsd.publish.memo import shared, shared_each

APPROVED_URI = "roots://approved"
ROOT_PREFIX = "roots://root/"
ROOT_TEMPLATE = "roots://root/{+name}"
JSON_TYPE = "application/json"

JsonObject = dict[str, Any]
Here = frozenset[bytes]
"""The paths of the roots in the workspace of a session."""
NOWHERE: Here = frozenset()

_PLAIN = frozenset("/._-~@+=%:")


def label_of(root: Root) -> str:
    """The root's name as clients show it, and models read it: nothing in it can deceive."""
    return safe_label(root.name, limit=None)


def root_uri(name: str) -> str:
    """The resource that describes the root called `name`; see ROOT_TEMPLATE (RFC 6570)."""
    return ROOT_PREFIX + quote(bytes_of(name), safe="/-._~")


def root_named_by(uri: str, published: Published) -> Root | None:
    """The root that `uri`, a `roots://root/` URI, stands for; None for all others."""
    if not uri.startswith(ROOT_PREFIX):
        return None
    return root_called(unquote(uri.removeprefix(ROOT_PREFIX), errors="surrogateescape"), published)


def root_called(name: str, published: Published) -> Root | None:
    """The root with that name or else that label, which is what clients were shown."""
    return _named(published).get(name)


@shared(size=16)
def _named(published: Published) -> dict[str, Root]:
    labels = {label_of(root): root for root in published.roots}
    return labels | {root.name: root for root in published.roots}


def item_of(root: Root, here: Here = NOWHERE) -> JsonObject:
    """Return a root as tools and `roots://root/` show it; `path` is null where it is no folder."""
    mark = {"in_workspace": True} if root.path in here else {}
    return {
        "name": label_of(root),
        "path": text_of(root.path) if is_folder(root) else None,
        "uri": root.uri,
        "kind": root.kind.value,
        "access": root.access.value,
        "tags": [safe_label(tag) for tag in root.tags],
        **mark,
    }


def line_of(root: Root, here: Here = NOWHERE) -> str:
    """Return a root as one line for a model: name, path or URI, access, and the mark of a root in
    the workspace."""
    place = text_of(root.path)
    access = "read only" if root.access is Access.READ else root.access.value
    mark = " (in this workspace)" if root.path in here else ""
    return f"- {quoted(label_of(root))}: {quoted(place)} ({access}){mark}"


def quoted(text: str) -> str:
    """Return `text` so that it cannot be taken for anything else in a line.

    Plain text stays as it is. Any other text becomes a JSON string, which gives back exactly the
    name on the disk, and holds no character that hides or reorders what a model reads.
    """
    if text and all(char in _PLAIN or char.isalnum() for char in text):
        return text
    return safe_json(json.dumps(text, ensure_ascii=False))


def roots_result(published: Published, uris: Uris, here: Here = NOWHERE) -> JsonObject:
    """Return the result of `roots/list` (MCP's ListRootsResult)."""
    return _roots_result(published, uris, here)


@shared(size=16)
def _roots_result(published: Published, uris: Uris, here: Here) -> JsonObject:
    return {"roots": [_mcp_root(root, here) for root in mcp_roots(published, uris)]}


def _mcp_root(root: Root, here: Here) -> JsonObject:
    mark = {"rootsd/inWorkspace": True} if root.path in here else {}
    return {
        "uri": root.uri,
        "name": label_of(root),
        "_meta": {
            "rootsd/kind": root.kind.value,
            "rootsd/access": root.access.value,
            "rootsd/tags": [safe_label(tag) for tag in root.tags],
            **mark,
        },
    }


def approved_text(published: Published, uris: Uris, here: Here = NOWHERE) -> str:
    """Return the text of `roots://approved`: the result of `roots/list`, and the revision."""
    return _approved_text(published, uris, here)


@shared(size=16)
def _approved_text(published: Published, uris: Uris, here: Here) -> str:
    roots = mcp_roots(published, uris)
    members = ",".join(
        compact(_mcp_root(root, here)) if root.path in here else text
        for root, text in zip(roots, _mcp_root_texts(roots), strict=True)
    )
    return f'{{"roots":[{members}],"revision":{published.revision}}}'


@shared_each(size=4)
def _mcp_root_texts(root: Root) -> str:
    """Kept for each root: to write thousands of them takes longer than the rest of an answer."""
    return compact(_mcp_root(root, NOWHERE))


def root_text(root: Root) -> str:
    """The text of a root's own resource."""
    return compact(item_of(root))


def compact(value: JsonObject) -> str:
    """`value` as the text that a client, and perhaps its model, reads."""
    return safe_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
