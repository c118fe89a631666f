"""The hardware itself, written with Veriloggen: from a design to Verilog."""

from bitloom.golden.docstrings import check_docstrings

check_docstrings("hls_gen.rtl")  # headers of modules are docstrings of files
