"""Faults of a program or of what is sent to the machine: a code, and the rule that was broken."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FaultRule:
    """A fault that the machine reports and stops at, until it is reset."""

    code: int
    """1 to 15; 0 stands for none."""
    name: str
    rule: str
    """The rule that was broken, as a sentence that should have been true."""


BAD_HEADER = FaultRule(1, "BAD_HEADER", "a packet begins with the magic number, and its check is right")
BAD_PACKET = FaultRule(2, "BAD_PACKET", "a packet is PROGRAM or RUN")
BAD_RANGE = FaultRule(3, "BAD_RANGE", "a packet's instructions are in the instruction cache")
TRUNCATED = FaultRule(4, "TRUNCATED", "tlast does not come before the end of a packet")
BAD_INSTRUCTION = FaultRule(5, "BAD_INSTRUCTION", "operation and function exist, and unused bits are 0")
BAD_ADDRESS = FaultRule(6, "BAD_ADDRESS", "rows and columns are 1 or more, and all addresses are in their caches")
BAD_TABLE = FaultRule(7, "BAD_TABLE", "a table is loaded, with 2^bits different values that are words, in rising order")
BAD_ZONE = FaultRule(8, "BAD_ZONE", "the zone is 1 or 2 and covers the table")
BAD_CONSTANT = FaultRule(9, "BAD_CONSTANT", "rate and mu are 2^-k with k = 0..31, and the seed is not 0")
NO_UNIT = FaultRule(
    10, "NO_UNIT", "the machine has the multiplier, divider, root or converter that an instruction needs"
)
NO_DATA = FaultRule(11, "NO_DATA", "IO takes no more words than the packet has")
DATA_LEFT = FaultRule(12, "DATA_LEFT", "IO takes all words of the packet before the program ends")

FAULTS = (
    BAD_HEADER,
    BAD_PACKET,
    BAD_RANGE,
    TRUNCATED,
    BAD_INSTRUCTION,
    BAD_ADDRESS,
    BAD_TABLE,
    BAD_ZONE,
    BAD_CONSTANT,
    NO_UNIT,
    NO_DATA,
    DATA_LEFT,
)
"""All faults, by code."""


class MachineFault(ValueError):
    """The machine stopped.

    Parameters
    ----------
    fault : FaultRule
        Which rule was broken.
    place : int
        Address of the instruction at fault.
    shown : str
        The instruction in words.

    Attributes
    ----------
    fault, place
        As above.
    """

    def __init__(self, fault: FaultRule, place: int, shown: str) -> None:
        self.fault = fault
        self.place = place
        super().__init__(f"instruction {place}: {fault.name}: {fault.rule}, got {shown}")
