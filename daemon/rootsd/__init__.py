"""rootsd: finds project folders, lets a person decide, and publishes what was approved.

How it is built. An arrow means "imports"; nothing imports upwards or sideways, and the contracts
in pyproject.toml hold it so.

    cli ──▶ app ──▶ publish ──▶ wire ──▶ core
     │       └────▶ host ───────────────▶ core
     └──▶ wire, and the few doors of host that need no daemon
    bridge, relay, check ──▶ wire, and the lean half of host: standard library only

core     decides. Pure: no clock, files, sockets, logging, threads. `step` changes one project,
         `judge` says what the verdict is, `is_published` is the one predicate for what clients
         see, `plan` turns inputs into a new catalog and the list of changes.
wire     bytes to messages and back. As pure as core.
host     all contact with the operating system: reads, identities, markers, watches, the store,
         sockets. It returns facts, "could not read" among them, and never an empty list for an
         error.
publish  the only place that knows the MCP SDK. Loaded at the first MCP connection.
bridge   connects one client's pipes to the daemon, whatever becomes of the daemon.
relay    runs one MCP server inside the approved set: what passes between client and server is
         sorted by a session without I/O, and one loop of poll(2) holds all pipes.
app      the daemon: one task group, one writer (`Ledger`), one discovery thread.
cli      arguments to a control message, a reply to lines. Loaded a command at a time.

How data flows. A scan, a file event or an order becomes a value. A file event says only "this
folder is dirty"; a probe of that folder turns it into an observation, exactly as a scan does.
Observations cannot be refused and can only take approvals away; orders can be refused, and only
orders approve. The ledger plans, saves and publishes, in the order that is safe when any of these
fails: what narrows the published set takes effect before it is saved, what widens it is saved
first. Notices are derived from the revision of the published set and never sent by whoever changed
it, so no path can forget them.

The invariant that every choice serves: no client is ever told a root that was not approved, or had
been denied, had lapsed or was out of reach, at the moment the answer was computed. In doubt, the
answer is smaller.
"""

__version__ = "0.1.0"
