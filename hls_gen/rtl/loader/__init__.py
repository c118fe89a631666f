"""Loader: takes the packets of the stream apart. Its parts are files of one subject each; it is one Verilog module."""

from .loader import loader
from .weights import weights_ports

__all__ = ["loader", "weights_ports"]
