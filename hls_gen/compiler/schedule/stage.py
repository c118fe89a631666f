"""Stages, of which schedules are made: windows of convolutions, dense layers and pools (spec B1)."""

from dataclasses import dataclass

from bitloom.golden.graph import INPUT
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.window import Pair
from bitloom.hls_gen.compiler.taps import Taps


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A window that slides over a map; a dense layer is a window of the whole map."""

    name: str
    """Of the stage and of the map that the stage makes."""
    weighted: bool
    """Whether its taps meet weights, so that they have places in a kernel: of a convolution, in the array or in the
    pool unit; not of a pool."""
    height: int
    width: int
    """height, width: size of the map that the stage reads, each >= 1."""
    window: Taps
    reads: str = INPUT
    """Name of the stage that makes that map; by default it is the network's input."""
    adds: str = ""
    """Name of the stage whose map is added to the one that this stage makes, position by position; empty where none
    is."""
    joins: str = ""
    """Name of the stage whose map is read beside the other one, position by position; empty where none is."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what in ("height", "width"):
            value = getattr(self, what)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{self.name}: {what} must be an integer >= 1, got {value!r}")
        self.window.check(self.name)
        if min(self.output_size) < 1:
            raise ValueError(
                f"{self.name}: the window must fit the padded map, got kernel {self.window.kernel} "
                f"on {self.height} x {self.width}"
            )

    @property
    def output_size(self) -> Pair:
        """(rows, columns) of the map that the stage makes."""
        return self.window.output_size(self.height, self.width)

    @property
    def places(self) -> int:
        """Places of the kernel: one a tap, but where sums of several windows are added up."""
        return self.window.places
