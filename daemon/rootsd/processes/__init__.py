"""Processes: their ancestors, what they do, when they end, and how this program starts itself."""
