"""What reading a map by a schedule's tables demands: rows of tables, and tuples that the tuple memory must hold."""

from dataclasses import dataclass

from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.compiler.tables import Tables, rows


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
    """

    hold: int
    tuples: int
    taps: int
    olds: int
    jumps: int

    def ring_words(self, words: int, room: int = 1) -> int:
        """Words of a tuple memory, a power of two.

        Parameters
        ----------
        words
            Words of a tuple.
        room
            Tuples beyond those that it must hold.
        """
        least = max((self.hold + (self.hold < self.tuples)) * words, 2)
        return 1 << (max(least, (self.hold + room) * words) - 1).bit_length()


def tabled(tables: StageTables, visits: int, again: bool, kernel: bool = True) -> ReadingDemand:
    """What reading by these tables needs; ``again``: each window is passed several times."""
    made = Tables(kernel=kernel)
    if kernel:
        made.append(tables, 1, visits=visits, reread=again)
    else:
        made.append(tables, 1)
    hold = int(made.layers[-1]["hold_tuples"])
    tuples, taps = len(tables.input_order), rows(made.flags)
    return ReadingDemand(hold=hold, tuples=tuples, taps=taps, olds=rows(made.olds), jumps=rows(made.jumps))
