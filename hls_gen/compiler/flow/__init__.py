"""Flow model: how words and beats flow through one or several NPUs, cycle by cycle, without arithmetic.

    Plan --of_plan--> System --simulate--> Result: cycles a frame, latency, waits, how full stores became; or Deadlock
                                                                          (docs/decisions, "Ring of NPUs"; spec D8)

Exact but for what is not modelled: pauses of the host.
"""

from .kahn import Blocked, Deadlock
from .layer import FlowLayer, Reading
from .simulate import Result, Waits, simulate
from .size import enough_skips, least_spill, skips_of, smooth, smooth_skips, spill_of
from .system import FlowNpu, System

__all__ = [
    "Blocked",
    "Deadlock",
    "FlowLayer",
    "FlowNpu",
    "Reading",
    "Result",
    "System",
    "Waits",
    "enough_skips",
    "least_spill",
    "simulate",
    "skips_of",
    "smooth",
    "smooth_skips",
    "spill_of",
]
