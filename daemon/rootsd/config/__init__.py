"""`config.toml` and the machine's policy: their tables, how they are read, and their reference."""
