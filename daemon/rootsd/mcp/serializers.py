"""Serialize roots and published sets for clients and models, and find roots by name or URI."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

from rootsd.core.access import Access
from rootsd.core.labels import safe_json, safe_label
from rootsd.core.model import (
    PublishedRoot,
    PublishedSet,
)
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import UriFilter, is_folder, listed_roots
from rootsd.mcp.cache import cached_by_identity, cached_each_by_identity

APPROVED_URI = "roots://approved"
ROOT_URI_PREFIX = "roots://root/"
ROOT_URI_TEMPLATE = "roots://root/{+name}"
JSON_MEDIA_TYPE = "application/json"

JsonObject = dict[str, Any]
WorkspacePaths = frozenset[bytes]
"""The paths of the roots in the workspace of a session."""
NO_WORKSPACE_PATHS: WorkspacePaths = frozenset()

_UNQUOTED_CHARS = frozenset("/._-~@+=%:")


def root_label(root: PublishedRoot) -> str:
    """Return the root's name for clients and models, without characters that deceive."""
    return safe_label(root.name, limit=None)


def root_uri(name: str) -> str:
    """Return the URI of the resource for the root `name`; see ROOT_URI_TEMPLATE (RFC 6570)."""
    return ROOT_URI_PREFIX + quote(bytes_of(name), safe="/-._~")


def root_by_uri(uri: str, published: PublishedSet) -> PublishedRoot | None:
    """Return the root with the `roots://root/` URI `uri`, or None."""
    if not uri.startswith(ROOT_URI_PREFIX):
        return None
    return root_by_name(
        unquote(uri.removeprefix(ROOT_URI_PREFIX), errors="surrogateescape"), published
    )


def root_by_name(name: str, published: PublishedSet) -> PublishedRoot | None:
    """Return the root with that name, or else with that label, which clients show. Or None."""
    return _roots_by_name(published).get(name)


@cached_by_identity(size=16)
def _roots_by_name(published: PublishedSet) -> dict[str, PublishedRoot]:
    labels = {root_label(root): root for root in published.roots}
    return labels | {root.name: root for root in published.roots}


def root_to_json(
    root: PublishedRoot, workspace: WorkspacePaths = NO_WORKSPACE_PATHS
) -> JsonObject:
    """Return a root for tools and `roots://root/`; `path` is null if the root is not a folder."""
    mark = {"in_workspace": True} if root.path in workspace else {}
    return {
        "name": root_label(root),
        "path": text_of(root.path) if is_folder(root) else None,
        "uri": root.uri,
        "kind": root.kind.value,
        "access": root.access.value,
        "tags": [safe_label(tag) for tag in root.tags],
        **mark,
    }


def root_to_line(root: PublishedRoot, workspace: WorkspacePaths = NO_WORKSPACE_PATHS) -> str:
    """Return a root as one line for a model.

    The line holds the name, the path or URI, the access, and a mark if the root is in the
    workspace.
    """
    place = text_of(root.path)
    access = "read only" if root.access is Access.READ else root.access.value
    mark = " (in this workspace)" if root.path in workspace else ""
    return f"- {quoted(root_label(root))}: {quoted(place)} ({access}){mark}"


def quoted(text: str) -> str:
    """Return `text` in a form that cannot be confused with the rest of a line.

    Plain text stays as it is. Any other text becomes a JSON string. The string holds the exact
    name on the disk, and no character that hides or reorders text for a model.
    """
    if text and all(char in _UNQUOTED_CHARS or char.isalnum() for char in text):
        return text
    return safe_json(json.dumps(text, ensure_ascii=False))


def roots_result(
    published: PublishedSet, uris: UriFilter, workspace: WorkspacePaths = NO_WORKSPACE_PATHS
) -> JsonObject:
    """Return the result of `roots/list` (MCP's ListRootsResult)."""
    return _cached_roots_result(published, uris, workspace)


@cached_by_identity(size=16)
def _cached_roots_result(
    published: PublishedSet, uris: UriFilter, workspace: WorkspacePaths
) -> JsonObject:
    return {"roots": [_mcp_root(root, workspace) for root in listed_roots(published, uris)]}


def _mcp_root(root: PublishedRoot, workspace: WorkspacePaths) -> JsonObject:
    mark = {"rootsd/inWorkspace": True} if root.path in workspace else {}
    return {
        "uri": root.uri,
        "name": root_label(root),
        "_meta": {
            "rootsd/kind": root.kind.value,
            "rootsd/access": root.access.value,
            "rootsd/tags": [safe_label(tag) for tag in root.tags],
            **mark,
        },
    }


def approved_resource_text(
    published: PublishedSet, uris: UriFilter, workspace: WorkspacePaths = NO_WORKSPACE_PATHS
) -> str:
    """Return the text of `roots://approved`: the result of `roots/list` with the revision."""
    return _cached_approved_text(published, uris, workspace)


@cached_by_identity(size=16)
def _cached_approved_text(
    published: PublishedSet, uris: UriFilter, workspace: WorkspacePaths
) -> str:
    roots = listed_roots(published, uris)
    members = ",".join(
        compact_json(_mcp_root(root, workspace)) if root.path in workspace else text
        for root, text in zip(roots, _mcp_root_texts(roots), strict=True)
    )
    return f'{{"roots":[{members}],"revision":{published.revision}}}'


@cached_each_by_identity(size=4)
def _mcp_root_texts(root: PublishedRoot) -> str:
    """Return a root as JSON text.

    Cached, because encoding thousands of roots takes longer than the rest of an answer.
    """
    return compact_json(_mcp_root(root, NO_WORKSPACE_PATHS))


def root_resource_text(root: PublishedRoot) -> str:
    """Return the text of a root's own resource."""
    return compact_json(root_to_json(root))


def compact_json(value: JsonObject) -> str:
    """Return `value` as JSON text that is safe to show to a client and its model."""
    return safe_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
