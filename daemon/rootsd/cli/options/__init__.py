"""Options that several verbs share, and what shells complete."""
