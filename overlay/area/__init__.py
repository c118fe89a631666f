"""Area of a design on an FPGA, by Yosys."""
