"""What the tests of watching without threads begin with."""

from support.exploring import open_world, world

__all__ = ["open_world", "world"]
