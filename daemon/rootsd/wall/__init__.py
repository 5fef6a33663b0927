"""Restrict processes with the kernel's means: the wall around programs, and the daemon itself.

The wall shows a program the approved folders, and changes that while the program runs. Of the
user's other files, it shows only tools and settings, without their secrets. It has floors, and
each uses only those below it:

* `session` runs one program behind the wall: options, the daemon's view, the terminal.
* `kernel` enforces a view. `kernel.daemon_rights` also drops rights that the daemon never needs.
* `git` knows what in git directories runs or is obeyed outside, and what a session left there.
* `outside_program` starts git and ssh outside, and reads what they print.
* `view` is what programs may see, as data. `system_calls` calls the kernel.

This is how it works.

**Processes.** The *warden* has its own user namespace and mount namespace. It keeps the
tree of folders that programs see. Each program has a *cell*: its own mount, process, IPC, and host
name namespaces below the warden's user namespace. The *owner* starts both. It is the front of
`rootsd confine`, or the run proxy of `rootsd run`.

    owner ──orders──> warden         the shared tree
      └─> waiter ─> init ─> program  a slave of that tree

The owner forks the warden before it knows what to show: so both load their modules at once, while
the daemon answers. See `session.begin`.

If the owner ends, the kernel ends the program, and the warden ends itself. If the warden ends, the
waiter ends the program: nobody could take a folder away any more.

**Changes.** The warden's tree is a shared mount, and the trees of the programs are slaves of it.
One mount or unmount in the warden appears in all of them, and in namespaces that the programs make
themselves. So a grant or revoke is one system call, and no process enters another's namespace.
See `kernel.skeleton` and `kernel.points`.

**Revocation.** A lazy unmount takes away the path, but not open folders and working directories.
One rule of Landlock does: it allows everything below `/`. A detached folder is below nothing. See
`kernel.landlock`. Files that are open stay open; `kernel.holders` finds and can end their
processes.

**Layers.** Mounts and namespaces carry paths, sockets, processes, and devices. Capabilities are
dropped, and the mounts of the warden are locked, so a program cannot change its view. Landlock
carries revocation, abstract sockets, and signals. `kernel.seccomp` carries keyrings, io_uring,
foreign sockets, and injected terminal input. `session.terminal` keeps the user's terminal outside.

**Protection.** Files in a root that programs outside run or obey are read-only inside, but for
those that git tracks, which a session reports: see `git.protected`. The kernel drops such a mount
when the file is replaced outside; the warden notices and mounts it again: see `kernel.covers`.

**Settings of git.** Inside, a link over `.git/config` leads to a private copy. Harmless changes
are written to the file outside: see `kernel.private_settings` and `git.carried_settings`.

**Push and fetch.** Keys stay outside. A relay runs the user's own ssh there, for the origins of
the roots only: see `session.relay_loop`.

**Storage.** What programs write outside of roots lies on disk: in layers that all programs of one
name keep, and in private folders that end with a start. See `kernel.own_storage`. The kernel sets
no limit for these, so `kernel.disk_room` stops programs before they fill the disk.

**Orders.** The view is data. `core.mount_plan` computes the mounts for a set of roots, and the
changes between two sets. An owner that knows the roots sends them as `orders`, and gets a report
after the kernel has applied each one. A warden can also follow a feed by itself, so that a stopped
front delays no revoke.

**Engines.** All of the above is the engine with namespaces. `kernel.engine` has another one, for
systems that forbid them: `kernel.fixed_view` makes rules of Landlock, and `kernel.static_cell` a
program under them. Its view is fixed when a program starts. It takes the same orders, and answers
which roots are lost, so that the program has ended, and which wait for the next start. Everything
that does not enforce is shared: the warden's loop, orders, feeds, the supervision of processes,
and terminals.
"""
