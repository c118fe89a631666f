"""Schedules: in which order every map is sent and made, and the tables that make hardware do it (spec B1 to B7)."""

from .order import AUTOMATIC, ORDERS, Schedule, schedule
from .raster import Raster
from .stage import Stage
from .tables import StageTables

__all__ = [
    "AUTOMATIC",
    "ORDERS",
    "Raster",
    "Schedule",
    "Stage",
    "StageTables",
    "schedule",
]
