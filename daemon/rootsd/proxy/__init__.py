"""Connect MCP clients and servers to the daemon by their standard input and output.

`bridge` runs `rootsd bridge`: it carries the messages of one client to the daemon. `run` runs
`rootsd run`: it starts one MCP server and answers that server's requests for roots. Both use one
`DaemonLink` to the daemon, and both keep their protocol in modules without I/O.

This package must stay lean. It uses the standard library only, because it starts once per client.
"""
