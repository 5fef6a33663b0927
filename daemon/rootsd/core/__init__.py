"""Decide what clients may see. Everything here is pure: no clock, files, sockets, or threads.

`model` defines projects, decisions, and rules, and `inputs` defines what can change them.
`transition` applies one input to one project. `decide` finds the verdict on a project. `catalog`
has all projects with their verdicts, and `plan` turns inputs into the next catalog.

Beside these: `history` and `undo` for the audit log, `scope` for the part that one connection
sees, `guard` for the callers that may decide, and `wall_view` and `view` for the wall.
"""
