"""rootsd: find project folders, let a person decide, and publish the approved ones as MCP roots.

One daemon runs per user. Two streams of data meet in it:

    watch ──▶ discovery ──▶ state ──▶ mcp ──▶ clients and servers      what the disk says
              cli ──▶ control ──▶ state                                what a person decides

The packages, in the order in which the data flows:

watch      reports file events below the watched folders (inotify, FSEvents, polling).
discovery  turns events and periodic scans into observations: this project is here, is gone, is
           incomplete. An event only says "something changed in this folder". A probe of the folder
           then finds out what, exactly as a scan does.
vcs        recognizes repositories: one plug-in per version control system.
disk       reads one file system safely: identities, mounts, markers, ownership. A read that fails
           is a separate result, and never looks like an empty folder.
cli        parses a command, sends a request to the daemon, and prints the response.
control    receives requests on the control socket. It checks the caller and resolves what the
           request refers to, then hands it to `state`.
state      holds the catalog. The ledger is its only writer: it plans, saves, and publishes each
           change. `state.store` is the SQLite database with the audit log.
mcp        publishes the approved roots on the MCP socket. Only this package knows the MCP SDK.
proxy      connects clients to the daemon: `bridge` for a client with roots support, and `run` for
           a server that must see only approved roots. Both survive restarts of the daemon.

The packages that all of them share:

core       decides. Pure code: no clock, files, sockets, or threads.
wire       the messages of both sockets as values, and their encoding. Pure as well.
system     the process and its surroundings: sockets, locks, paths, configuration, processes.
confine    restricts what the daemon itself may touch (Landlock).
helper     a helper process for work that the confined daemon may not do.
service    starts and stops the daemon: systemd, launchd, or in the background.
daemon     builds all parts of the daemon and runs them.

Three modules are entry points: `__main__` (the `rootsd` command), `check` (for shell prompts), and
`client` (the Python API). The layers in pyproject.toml fix which package may import which.

Observations and decisions have different powers. An observation cannot be refused and can only
take an approval away. A decision can be refused, and only a decision approves. The ledger orders
its work so that a crash is safe at any point. A change that narrows the published roots takes
effect before it is saved. A change that widens them is saved first. Subscribers are notified
because the revision of the published roots has changed, so no code path can forget to notify them.

All of this serves one invariant: at the moment of an answer, the answer contains no root that was
unapproved, denied, lapsed, or unreachable. In doubt, the answer is smaller.
"""

__version__ = "0.2.0"
