"""Builds: the hardware, the programs and the driver's files of one design, in one folder; and running them."""
