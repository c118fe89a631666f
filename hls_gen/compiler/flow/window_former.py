"""The window former, between words that come and the tuple memory (hls_gen/rtl/former/window_former.py).

    words --> word register --a position a cycle--> window --a word a cycle--> writer

A position beside the map needs no word, but for the first one of a frame, which waits for the frame's. No position goes
into the window while it has words to give, but in the cycle in which the last of these is taken, or the first one where
the former has a copy of the others.
"""

from bitloom.hls_gen.design.formed_windows import FormedWindows

from .kahn import Wait
from .streams import Source


class WindowFormer:
    """A source: words of windows.

    Parameters
    ----------
    source
        Words of maps.
    formed
        Windows that are made of a map.
    frames
        How many come.
    """

    def __init__(self, source: Source, formed: FormedWindows, frames: int):
        self._source = source
        self._formed = formed
        self._inside, self._hits = formed.inside().tolist(), formed.hits().tolist()
        self._left_in_frame = sum(self._inside)
        self._frames = frames
        self._number = 0
        """Of the position that comes next, in its frame."""
        self._unread = self._left_in_frame
        """Positions of the frame that have not come yet."""
        self._held = 0
        """Of these, the ones in the word register."""
        self._loaded = self._emptied = -1
        """Cycles in which the word register was last filled, and last given up."""
        self._step = 0
        """Cycle of the latest position; the former begins a cycle after the start."""
        self._words = 0
        """Words that the window at hand has yet to give."""
        self._copied = 0
        """Words that the one before has yet to give, of which there is a copy."""
        self._taken = self._left = -1
        """Cycles in which the latest word was taken, and the one with which a window left its place."""

    @property
    def word(self) -> Wait:
        """See Source."""
        return self._source.word

    def next(self) -> int | None:
        """See Source."""
        self._advance()
        if self._copied:
            return self._taken + 1
        return max(self._step, self._taken) + 1 if self._words else None

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._taken = cycle
        if self._copied:
            self._copied -= 1
        else:
            self._words -= 1
            if self._formed.ahead:
                self._copied, self._words = self._words, 0
            if not self._words:
                self._left = cycle
        self._advance()  # words of the frame may have to come in before another one is wanted

    def _advance(self) -> None:
        """Take positions until a window is complete, or as far as is known."""
        while not self._words and self._frames and self._load():
            cycle = max(self._step + 1, self._left)
            if self._waits():
                cycle = max(cycle, self._loaded + 1)
            if self._inside[self._number]:
                self._held = self._held - 1
                self._unread = self._unread - 1
                if not self._held:
                    self._emptied = cycle
            self._step = cycle
            self._words = self._formed.words * self._hits[self._number]
            self._number += 1
            if self._number == len(self._inside):
                self._number = 0
                self._unread = self._left_in_frame
                self._frames -= 1
        if self._frames:
            self._load()

    def _load(self) -> bool:
        """Fill the word register where it is empty; False where the next position waits for that."""
        if not self._held and self._unread:
            cycle = self._source.next()
            if cycle is None:
                return not self._waits()
            self._loaded = max(cycle, self._emptied)
            self._source.taken(self._loaded)
            self._held = min(self._formed.word_positions, self._unread)
        return self._held > 0 or not self._waits()

    def _waits(self) -> bool:
        """Whether the next position waits for a word."""
        return self._inside[self._number] or not self._number
