"""The tools as clients and models see them: titles, descriptions, schemas, annotations."""

from __future__ import annotations

from typing import Any

from mcp_types import Tool, ToolAnnotations

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ROOT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Unique; chosen by the user."},
        "path": {
            "type": ["string", "null"],
            "description": "Absolute path of the folder; null where the root is no folder.",
        },
        "uri": {"type": "string"},
        "kind": {"type": "string", "description": "git, git-worktree, project, uri, …"},
        "access": {
            "type": "string",
            "enum": ["read-write", "read"],
            "description": "read: the user asks that nothing in it be changed.",
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "path", "uri", "kind", "access", "tags"],
}
_REVISION_SCHEMA: dict[str, Any] = {
    "type": "integer",
    "description": "Grows with each change of the approved set, and never goes back.",
}

LIST_ROOTS = Tool(
    name="list_roots",
    title="List approved folders",
    description=(
        "Lists every project folder that the user approved for work in this session. Call it"
        " before reading or changing files, and again when told that the list changed. A folder"
        " that is not listed is not approved."
    ),
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    output_schema={
        "type": "object",
        "properties": {
            "roots": {"type": "array", "items": _ROOT_SCHEMA},
            "revision": _REVISION_SCHEMA,
        },
        "required": ["roots", "revision"],
    },
    annotations=_READS,
)

RESOLVE_ROOT = Tool(
    name="resolve_root",
    title="Find an approved folder",
    description=(
        "Finds one approved folder by its name, or tells whether a path lies inside one and"
        " inside which. Give either name or path. Symbolic links are followed: where one leads out"
        " of a folder, the path is not inside."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a root, as list_roots shows it."},
            "path": {"type": "string", "description": "Absolute path of a file or folder."},
        },
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "inside": {
                "type": "boolean",
                "description": "Whether an approved root has that name or holds that path.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "relative": {
                "type": ["string", "null"],
                "description": "The path seen from the root; '.' for the root itself.",
            },
            "revision": _REVISION_SCHEMA,
        },
        "required": ["inside", "root", "relative", "revision"],
    },
    annotations=_READS,
)

LONGEST_WAIT_S = 120
LONGEST_REASON = 200

REQUEST_ROOT = Tool(
    name="request_root",
    title="Ask for a folder",
    description=(
        "Asks the user to approve one more folder. Call it when the work needs a folder that"
        " list_roots does not show. It approves nothing by itself: the user is told of your"
        " request with its reason, and decides elsewhere. The call waits for a while and then says"
        " how things stand; an approval may come later, and list_roots shows it then."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute path of the folder."},
            "reason": {
                "type": "string",
                "maxLength": LONGEST_REASON,
                "description": "What the folder is needed for, in a sentence for the user.",
            },
            "wait_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": LONGEST_WAIT_S,
                "description": "How long to wait for the decision; 45 where it is left out.",
            },
        },
        "required": ["path", "reason"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "approved": {
                "type": "boolean",
                "description": "Whether the folder is, or lies in, an approved one now.",
            },
            "denied": {
                "type": "boolean",
                "description": "Whether the user said no to this request while the call waited.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "revision": _REVISION_SCHEMA,
            "advice": {"type": "string", "description": "What to do now."},
        },
        "required": ["approved", "denied", "root", "revision", "advice"],
    },
    annotations=ToolAnnotations(
        read_only_hint=False,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    ),
)
TOOLS = (LIST_ROOTS, RESOLVE_ROOT, REQUEST_ROOT)
