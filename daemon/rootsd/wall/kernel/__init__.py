"""Enforce a view with the kernel: mounts, namespaces, Landlock, and seccomp."""
