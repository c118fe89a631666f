"""The project for openXC7: a design on a Zynq-7000 without AMD's cores and tools."""

from .sources import openxc7_files, suits

__all__ = ["openxc7_files", "suits"]
