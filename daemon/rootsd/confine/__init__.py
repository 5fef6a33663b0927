"""Restrict what this process may do, with Landlock."""
