# Nothing: all connections outside of the programmable logic are those of PS7, whose pins are its own.
