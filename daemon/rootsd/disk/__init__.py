"""One file system: read, identify, walk, and check folders safely.

Everything here may touch hostile content, because the author of a project chooses its names,
links, and files. So `reader` opens only small regular files and follows no links. `hung_mounts`
decides which paths are safe to follow. `identity` distinguishes a folder from a replacement, and
`safety` checks who could replace it. `walk` lists the projects below a parent by the names in
`markers`.
"""
