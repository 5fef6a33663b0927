"""Reach the daemon from another process: connect, ask once, and stay connected."""
