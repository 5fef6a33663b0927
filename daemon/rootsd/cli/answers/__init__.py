"""What verbs do: ask the daemon, ask the person, and change files."""
