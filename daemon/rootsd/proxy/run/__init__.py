"""Run one MCP server, and give it the approved roots in the way that this server understands.

`main` parses the arguments with `options`, decides whether the server needs a wall, and starts it.
`assembly` builds the proxy in front of it.

A message of the client takes this path: `loop` reads it, `line_reader` splits lines, `session`
decides when it goes on, and `router` decides what goes on. The server's messages come back the
same way. `input_required` supports the router for roots requests of MCP 2026-07-28, and
`rootsd.proxy.replay` restores the session at a restarted server.

Before a call, `place` learns where the session works, and moves the server there between two
calls. `codex` reads what Codex says about it.

The approved roots take this path: `rootsd.link.roots_feed` gets them from the daemon. A server
behind a `wall` gets those that the kernel shows. `roots` narrows them and answers the server.
`readiness` holds calls until the server has loaded them. `restart` decides whether the server must
be restarted with a new `command`, and `process` starts it.
"""
