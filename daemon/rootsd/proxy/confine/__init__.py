"""Run one program behind the wall, with the approved roots of its session.

`options` parses the arguments, `session_view` turns them into the base of the view, `view_feed`
follows the daemon, and `main` starts everything. The engine itself is `rootsd.confine`: a warden
process keeps the tree of folders and applies each change, and the program runs in a cell below it.
"""
