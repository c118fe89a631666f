"""Sources for a bitstream: what Vivado needs, from the block design that the simulation also has."""

from .sources import clear_sources, write_sources

__all__ = ["clear_sources", "write_sources"]
