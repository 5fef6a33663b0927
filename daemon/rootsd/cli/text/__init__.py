"""Words, tables, and colors on a terminal: how the command line says something."""
