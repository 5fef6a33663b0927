"""Notifications on the desktop."""
