"""The hardware itself, written with Veriloggen: from a design to Verilog.

A module is made by a function of the NPU, or the design, that it is part of: ``results(library, npu)``. The library
names modules, and has those that stand inside them.
"""

from bitloom.golden.docstrings import check_docstrings

check_docstrings("hls_gen.rtl")  # headers of modules are docstrings of files
