"""rootsd: finds project folders, lets a person decide, and publishes what was approved."""

__version__ = "0.1.0"
