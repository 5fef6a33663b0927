"""The daemon's MCP sessions: open connections, their roots, their requests, and their history."""
