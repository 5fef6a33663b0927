"""Fixtures for tests of watching without threads."""

from support.engine_harness import open_world, world

__all__ = ["open_world", "world"]
