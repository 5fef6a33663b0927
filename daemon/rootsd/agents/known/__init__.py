"""One module for each known agent: its name is that of the program, with `_` for `-`."""
