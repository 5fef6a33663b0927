"""MCP over a local socket: one connection, its protocol, its tools, and its notifications.

How a request is answered:

1. `sessions.server` accepts a connection and calls `connection.serve_session`.
2. `connection` reads bytes and splits them into lines.
3. `protocol` parses each line. It answers `rootsd/hello` and `roots/list` itself, and passes all
   other requests to `server`, which runs them on the low-level server of the MCP SDK.
4. The SDK calls the handlers in `tools` and `resources`. A handler reads roots only through the
   connection's `views.ConnectionView`, which verifies the published set and applies the scope and
   the focus.
5. `responses` takes the answer, completes batches, and writes one line at a time with
   `connection.LineWriter`.

How a client is notified of a change:

1. Each connection has a task that waits for a new revision of the published set
   (`source.RootsSource.wait_past`).
2. `views` applies the scope to the old and the new set, and `diff` compares them.
3. `subscriptions` delays additions for a moment, but never a revocation. It makes the lines for
   all subscribers, and one write sends them.

Only `sessions` does I/O: it is the daemon's side, knows which connections are open, and reads
roots from the ledger. The other modules get streams and roots as arguments. The SDK is imported
with the first connection only, so this file imports nothing.
"""
