"""MCP over a local socket: one connection, its protocol, its tools, and its notifications.

From bytes to answers. `sessions.server` accepts a connection and calls `connection.serve_session`.
`connection` reads bytes and cuts them into lines. `protocol` parses each line. It answers
`rootsd/hello` and `roots/list` itself and passes all other requests to `server`, which runs them
on the low-level server of the MCP SDK. The SDK calls the handlers in `tools` and `resources`.
A handler reads roots only through the connection's `views.ConnectionView`, which verifies the
published set and applies the scope and the focus. The answer goes to `responses`, which completes
batches and writes one line at a time with `connection.LineWriter`.

From a change to a notification. Each connection has a task that waits for a new revision of the
published set (`source.RootsSource.wait_past`). `views` applies the scope to the old and the new
set, and `diff` compares them. `subscriptions` holds back additions for a moment, but never a
revocation, and makes the lines for each subscriber. These lines leave in one write.

The package does no I/O itself: streams and roots are passed in. `sessions` is the daemon's
side: it knows which connections are open and reads roots from the ledger. The SDK is imported
with the first connection only, so this file imports nothing.
"""
