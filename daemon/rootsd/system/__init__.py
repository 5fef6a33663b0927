"""The operating system: sockets, locks, folders, processes, clocks, and the desktop."""
