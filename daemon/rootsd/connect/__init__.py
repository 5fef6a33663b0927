"""Connect MCP clients to rootsd, in each client's own configuration, and disconnect them.

* `clients` has one module per client: a description as data, with code for unusual behavior only.
  `registry` finds these modules.
* `base` says what rootsd must know about a client.
* `edits` changes the text of a configuration, and takes each change back. It does no I/O.
* `servers` finds the servers that `rootsd run` can wrap.
* `record` remembers what was changed in the state folder, with the text from before.
* `wiring` edits the files of one client.
* `trial` starts a server once to see whether it works, and `health` asks a client about rootsd.

A disconnect restores a file byte for byte if nobody has touched it since. Otherwise it removes
exactly what rootsd wrote, and everything that a person or the client wrote stays.
"""
