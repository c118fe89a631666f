"""Sources for a bitstream: what Vivado needs, from the block design that the simulation also has."""

from .sources import source_files

__all__ = ["source_files"]
