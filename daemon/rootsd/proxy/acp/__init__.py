"""Relay between an ACP client, such as an editor, and an ACP agent.

ACP is the Agent Client Protocol, version 1: JSON-RPC 2.0, one message a line. `main` parses the
arguments and starts the agent. `rootsd.proxy.run.loop` moves the bytes, as for an MCP server.
`session` decides about each message, `messages` edits the few that change, and `folders` asks the
daemon and the disk about folders.
"""
