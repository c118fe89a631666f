"""What reading a map by a schedule's tables demands: rows of tables, and tuples that the tuple memory must hold."""

from dataclasses import dataclass

from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.compiler.tap_rows import TapRows


@dataclass(frozen=True)
class ReadingDemand:
    """What one way to read a map needs.

    Attributes
    ----------
    hold
        Tuples that the tuple memory must hold.
    tuples
        Tuples of the map.
    taps, olds, jumps
        Rows of the tables.
    steady
        Tuples with which counters don't wait at the beginning of a row of windows; 0 without counters.
    aheads
        Rows of the table of tuples that are claimed ahead; 0 without it.
    """

    hold: int
    tuples: int
    taps: int
    olds: int
    jumps: int
    steady: int = 0
    aheads: int = 0

    def ring_words(self, words: int, room: int = 1) -> int:
        """Words of a tuple memory, a power of two.

        Parameters
        ----------
        words
            Words of a tuple.
        room
            Tuples beyond those that it must hold.
        """
        least = max((self.hold + (self.hold < self.tuples)) * words, self.steady * words, 2)
        return 1 << (max(least, (self.hold + room) * words) - 1).bit_length()


def tabled(
    tables: StageTables, visits: int, again: bool, *, kernel: bool = True, raster: bool = False, ahead: bool = False
) -> ReadingDemand:
    """What reading by these tables needs, or by counters in their place.

    Parameters
    ----------
    tables
        The schedule.
    visits
        Beats of each word at a tap.
    again
        Whether each window is passed several times.
    kernel
        Whether they are a convolution's; else a pool's.
    raster
        Whether the NPU has counters.
    ahead
        Whether taps claim tuples ahead by a table.
    """
    if not kernel:
        visits = 1
        again = False
    made = TapRows.of(tables, visits=visits, reread=again, kernel=kernel, raster=raster, ahead=ahead)
    steady = max(2, made.steady) if raster else 0
    return ReadingDemand(made.hold, made.tuples, made.taps, made.olds, made.jumps, steady, made.aheads)
