"""Hardware: from a design to checked Verilog, through Veriloggen."""
