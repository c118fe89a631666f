"""What a network from outside became."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bitloom.golden.encoding import Array
from bitloom.golden.network import Model

from .boundaries import Ends, Line


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a section became, for the explanation.

    Attributes
    ----------
    nodes : tuple of str
        The file's nodes.
    layers : tuple of str
        Golden's layers.
    engine : str
    weights, made : str
        Encodings; ``made`` is empty for sums.
    range : (int, int)
        Smallest and largest sum.
    levels : int
        Levels of the quantiser, 0 for none.
    falling : int
        Channels whose level falls as the sum rises.
    used : float
        The share of weights that are not 0; convolutions of groups have zeros for the other groups' channels, which
        hardware computes like other weights.
    wrong : (int, int)
        Sums, of all channels, that get another level than the file's, and by how many levels at most.
    """

    nodes: tuple[str, ...]
    layers: tuple[str, ...]
    engine: str
    weights: str
    made: str
    range: tuple[int, int]
    levels: int
    falling: int
    used: float
    wrong: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Emitted:
    """A model, and what its integers are worth.

    Attributes
    ----------
    model : Model
    scores : tuple of Line and Ends
        From the last layer's integers to the file's output, a channel of the last map.
    built : tuple of Built
        One a section.
    real : dict of str to array
        By layer, the real numbers of which the layer's weights of 1 bit are the signs, where the file has them.
    """

    model: Model
    scores: tuple[Line | Ends, ...]
    built: tuple[Built, ...]
    real: Mapping[str, Array] = field(default_factory=dict)
