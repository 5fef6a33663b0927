"""The MCP sessions of the daemon: connections, their roots, their requests, and their history."""
