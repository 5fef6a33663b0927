"""Run one program behind the wall, with the approved roots of its session.

`options` parses the arguments, `session_view` turns them into the base of the view, `view_feed`
follows the daemon, `terminal` connects the user's terminal, and `main` starts everything. The
floor below, `kernel`, keeps the tree of folders and starts the program.
"""
