"""The folder that goes to a board: bitstream, programs, the package as a wheel, and a driver script that runs."""
