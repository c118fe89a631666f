"""What a design takes of an FPGA, by Yosys."""
