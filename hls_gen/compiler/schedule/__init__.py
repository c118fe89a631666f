"""Schedules: in which order every map is sent and made, and the tables that make hardware do it (spec B1 to B7)."""

from .order import AUTOMATIC, ORDERS, Schedule, schedule
from .raster import Raster
from .stage import Stage, stages
from .tables import StageTables, TableBits

__all__ = [
    "AUTOMATIC",
    "ORDERS",
    "Raster",
    "Schedule",
    "Stage",
    "StageTables",
    "TableBits",
    "schedule",
    "stages",
]
