"""Tell what the agents and MCP servers of this machine can read and write now.

This needs no daemon and writes nothing: not a cache, and no folder. Settings files are read as
those of a stranger: a link, a FIFO, or a file of any size only makes a finding. No content of a
secret is read, only names.
"""
