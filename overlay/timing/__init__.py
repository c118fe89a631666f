"""How fast a design can be clocked: a routed frequency on an ECP5, and an estimate for Xilinx 7 series."""
