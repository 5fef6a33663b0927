"""One file system: read, identify, walk, and check folders safely.

Everything here may touch hostile content: a project's author chooses the names, links, and files
in it. So `reader` opens small regular files only and follows no links, `hung_mounts` decides which
paths are safe to follow, `identity` tells a folder from its replacement, and `safety` checks who
could replace it. `walk` lists the projects below a parent by the names in `markers`.

This package imports nothing of `vcs`.
"""
