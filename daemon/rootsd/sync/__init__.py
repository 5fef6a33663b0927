"""Keep the access lists of MCP clients in step with the decisions: `rootsd sync`.

Clients have their own lists: folders that their tools may open, and folders that they must not.
This package writes the decisions into these lists. It runs as a separate process, because the
daemon writes only in its own folders.

* `access` chooses the folders from what the daemon says: denials, and grants for some tags.
* `targets` has the format of each client: its file, its keys, and how a folder is written there.
* `reconcile` compares what should be in a file, what is there, and what is ours.
* The package `rootsd.settings` edits the text, and replaces the file.
* `record` remembers which entries are ours, so that no other entry is ever removed.
* `process` follows the daemon, and withdraws the grants when it ends.

A file outlives its writer. So a grant is weaker here than over MCP: after a power loss, it stays
until the next start. A denial stays until a person takes it back.
"""
