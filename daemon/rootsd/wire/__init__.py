"""The messages of the control socket and of MCP, as types and text. Pure.

* `request` has the base class of control requests. Each family of requests has a module: `daemon`,
  `decisions`, `guard`, `projects`, and `wall`. `registry` finds the requests and decodes them.
* `hello` is the first message of bridges and run proxies. `scope` turns the scope in it into a
  `rootsd.core.scope.Scope`.
* `jsonrpc` parses and encodes JSON-RPC, and `mcp_messages` has the MCP messages that proxies need.
"""
