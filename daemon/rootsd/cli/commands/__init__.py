"""One module per verb, with the same name.

The first line of a module's docstring is the verb's line in `rootsd --help`, and its `SECTION` is
the section there. `command` is the click command. `rootsd.cli.verb_table` finds all of these, so a
new verb needs no line elsewhere.
"""
