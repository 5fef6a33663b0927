"""The tools as clients and models see them: titles, descriptions, schemas, annotations.

The input schemas use only what every model API takes: types, properties, descriptions, `required`.
Bounds stand in the descriptions, and the tools take what is out of bounds as it was meant: some
clients check arguments by the schema, and the model would see an error that we cannot explain.

`list_roots` has no output schema, since it returns text alone. Claude Code, Codex, VS Code and
opencode show their model only `structuredContent` if there is any; Gemini CLI, Qwen Code, Open
WebUI and the agent SDKs show only `content`; Copilot shows both. Text alone reaches every model,
once. (anthropics/claude-code#79944, openai/codex#2594, anomalyco/opencode#32074,
github/copilot-cli#4515)
Programs read the list as JSON from `roots://approved` or `roots/list`.
"""

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
        "in_workspace": {
            "type": "boolean",
            "description": "true: the folder belongs to the project that this session works in.",
        },
    },
    "required": ["name", "path", "uri", "kind", "access", "tags"],
}
_REVISION_SCHEMA: dict[str, Any] = {
    "type": "integer",
    "description": "Grows with each change of the approved set, and never goes back.",
}
_CHANGES_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "Which approved folders were added or removed since your last call, if any.",
}
USUAL_LIMIT = 100

LIST_ROOTS = Tool(
    name="list_roots",
    title="List approved folders",
    description=(
        "Lists the project folders that the user approved for work in this session, one per line:"
        " name, path, access. Call it before reading or changing files. A folder that is not"
        " listed is not approved. Later, the answer of each of these tools says which folders"
        " were added or removed since your last call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "List only folders with this text in their name, a tag or the path;"
                " * and ? are wildcards. Leave it out to list all.",
            },
            "limit": {
                "type": "integer",
                "description": f"The most folders to list; {USUAL_LIMIT} if it is left out.",
            },
        },
    },
    annotations=_READS,
)

RESOLVE_ROOT = Tool(
    name="resolve_root",
    title="Find an approved folder",
    description=(
        "Finds one approved folder by its name, or tells whether a path lies inside one and"
        " inside which. Give the name, or the path, or the name and a path relative to that"
        " folder. Symbolic links are followed: if one leads out of a folder, the path is not"
        " inside."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a root, as list_roots shows it."},
            "path": {
                "type": "string",
                "description": "Absolute path or file:// URI of a file or folder.",
            },
        },
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
            "changes": _CHANGES_SCHEMA,
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
            "path": {
                "type": "string",
                "description": "Absolute path or file:// URI of the folder.",
            },
            "reason": {
                "type": "string",
                "description": "What the folder is needed for, in a short sentence for the user.",
            },
            "wait_seconds": {
                "type": "integer",
                "description": "How long to wait for the decision, from 0 to"
                f" {LONGEST_WAIT_S}; 45 if it is left out.",
            },
        },
        "required": ["path", "reason"],
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
            "changes": _CHANGES_SCHEMA,
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
