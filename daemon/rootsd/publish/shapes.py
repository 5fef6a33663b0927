"""The published set as JSON: the shapes that clients see, in each place where they see it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

from rootsd.core.labels import safe_json, safe_label
from rootsd.core.model import Published, Root
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import Uris, is_folder, mcp_roots
from rootsd.publish.memo import shared, shared_each

APPROVED_URI = "roots://approved"
ROOT_PREFIX = "roots://root/"
ROOT_TEMPLATE = "roots://root/{+name}"
JSON_TYPE = "application/json"

JsonObject = dict[str, Any]


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


def item_of(root: Root) -> JsonObject:
    """A root as tools and `roots://root/` show it; `path` is null where it is no folder."""
    return {
        "name": label_of(root),
        "path": text_of(root.path) if is_folder(root) else None,
        "uri": root.uri,
        "kind": root.kind.value,
        "access": root.access.value,
        "tags": [safe_label(tag) for tag in root.tags],
    }


@shared(size=4)
def listing_of(published: Published) -> JsonObject:
    """The result of the tool `list_roots`: every root, folder or not."""
    return {"roots": [item_of(root) for root in published.roots], "revision": published.revision}


@shared(size=4)
def listing_text(published: Published) -> str:
    """`listing_of` as JSON, for clients older than structured results."""
    return compact(listing_of(published))


@shared(size=4)
def roots_result(published: Published, uris: Uris) -> JsonObject:
    """The result of `roots/list` (MCP's ListRootsResult)."""
    return {"roots": [_mcp_root(root) for root in mcp_roots(published, uris)]}


def _mcp_root(root: Root) -> JsonObject:
    return {
        "uri": root.uri,
        "name": label_of(root),
        "_meta": {
            "rootsd/kind": root.kind.value,
            "rootsd/access": root.access.value,
            "rootsd/tags": [safe_label(tag) for tag in root.tags],
        },
    }


@shared(size=4)
def approved_text(published: Published, uris: Uris) -> str:
    """The text of `roots://approved`: the result of `roots/list`, and the revision."""
    members = ",".join(_mcp_root_texts(mcp_roots(published, uris)))
    return f'{{"roots":[{members}],"revision":{published.revision}}}'


@shared_each(size=4)
def _mcp_root_texts(root: Root) -> str:
    """Kept for each root: to write thousands of them takes longer than the rest of an answer."""
    return compact(_mcp_root(root))


def root_text(root: Root) -> str:
    """The text of a root's own resource."""
    return compact(item_of(root))


def compact(value: JsonObject) -> str:
    """`value` as the text that a client, and perhaps its model, reads."""
    return safe_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
