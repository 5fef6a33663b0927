"""Where rootsd keeps its files, and where a user's programs keep theirs."""
