# Constraints of the whole design. There is nothing to add, and here is why:
#
# - Clock: the processing system drives the only clock, and its IP core brings the constraint with it, with the frequency
#   of design.tcl. A second create_clock would override it.
# - Pins: the device has none. DDR and fixed I/O are the processing system's, which places them itself.
# - Exceptions: all flip-flops are on that clock, and the reset comes from proc_sys_reset, synchronous to it. No path is
#   false and none takes several cycles.
