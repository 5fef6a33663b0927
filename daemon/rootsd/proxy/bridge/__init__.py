"""Carry the messages of one MCP client to the daemon, across restarts of the daemon.

`main` parses the arguments, `loop` moves the bytes, `session` remembers the client's session and
restores it at a new daemon, and `held_calls` holds calls until the client has said where it works.
"""
