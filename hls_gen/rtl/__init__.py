"""The hardware itself, written with Veriloggen: from a design to Verilog."""
