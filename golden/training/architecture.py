"""Networks to train, named by a few words: ``conv16,pool,conv32,pool,dense10``, weights and activations apart.

=====================  =================================================================================
word                   layer
=====================  =================================================================================
conv16                 convolution with 16 kernels of 3 x 3 and as much padding as keeps the map's size
conv16k5s2p0           kernels of 5 x 5, stride 2, padding 0; each of k, s and p may be left out
dense128               dense layer with 128 outputs
res                    residual convolution, of as many kernels as the map before has channels: what it makes is added
                       to that map, and the sign of the sum goes on (beside binary and ternary weights, activations 1)
pool, pool3            max pool of 2 x 2 or 3 x 3 that don't overlap
avgpool, avgpool3      average pool, for integers
=====================  =================================================================================

After each conv and dense layer but the last comes its activation; pools take what the activation gives. The map that a
residual convolution adds to is one of integers: of them the activation's bits are the signs.
"""

import re
from collections.abc import Sequence

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import shown
from bitloom.golden.network import Network

WEIGHTS: dict[str, Encoding] = {"binary": BIPOLAR, "ternary": TERNARY, **{f"int{b}": signed(b) for b in range(2, 9)}}
"""Weights by name. Those of integers are for networks whose activations are integers, too."""
LEVELS = {"1": 1, "ternary": 2, "2": 3, "3": 7}
"""Activations beside binary and ternary weights: bits, or their name -> thresholds. Ternary are -1, 0, 1."""
INTEGER_BITS = range(2, 9)
"""Activations beside integer weights: unsigned, of so many bits."""
ACTIVATIONS = tuple(dict.fromkeys([*LEVELS, *map(str, INTEGER_BITS)]))
MOST = 1 << 16
"""Largest number in a word of an architecture, such as conv16; more would not fit a design."""
MOST_WORDS = 64
FRACTION = 4
"""Bits behind the point of a bias: of few-bit weights an accumulator's step may be several steps of the result."""

ADDEND, SUM = signed(6), signed(8)
"""ADDEND, SUM: encodings of a residual convolution's map, which is added, and of the map that the addition makes."""

_WORD = re.compile(r"(?P<kind>conv|dense|res|pool|avgpool)(?P<size>\d{1,5})?(?P<more>(?:[ksp]\d{1,5})*)", re.ASCII)


def network_of(name: str, source: Map, text: str, weights: str = "binary", activations: str = "1") -> Network:
    """The network that words describe.

    Parameters
    ----------
    name : str
        Of the network.
    source : Map
        Its input.
    text : str
        Words of the table above, separated by commas; the last is dense, or a conv that leaves one position.
    weights : str
        One of WEIGHTS.
    activations : str
        One of ACTIVATIONS: beside binary and ternary weights one of LEVELS, else one of INTEGER_BITS.

    Returns
    -------
    Network
        Without classes.

    Raises
    ------
    ValueError
        If a word is none of these, or the layers don't fit together. One line.
    """
    _check_activations(weights, activations)
    words = [word.strip() for word in text.split(",")]
    if len(words) > MOST_WORDS:
        raise ValueError(f"layers: must be {MOST_WORDS} at most, got {len(words)}")
    layers: list[Layer] = []
    weighted = 0
    for place, word in enumerate(words, 1):
        match = _WORD.fullmatch(word)
        if match is None or not _suits(match["kind"], match["size"], match["more"]):
            raise ValueError(
                f"layers: word {place} must be as conv16, conv16k5s2p0, dense10, res, pool, pool3 or "
                f"avgpool, got {shown(word)}"
            )
        if match["kind"] in ("pool", "avgpool"):
            layers.append(_pool(match["kind"], int(match["size"] or 2), weighted, layers))
            continue
        weighted += 1
        if match["kind"] == "res":
            layers += _residual(weighted, layers, source, place, (weights, activations))
            continue
        more = {letter: int(number) for letter, number in re.findall(r"([ksp])(\d+)", match["more"])}
        layers.append(_weighted(match["kind"], weighted, int(match["size"]), WEIGHTS[weights], more))
        if words[place : place + 1] == ["res"]:
            layers += _forked(weighted)
        elif any(word.startswith(("conv", "dense", "res")) for word in words[place:]):  # the last one stays raw
            layers.append(_activation(weighted, weights, activations))
    return Network(name=name, input=source, layers=tuple(layers))


def _check_activations(weights: str, activations: str) -> None:
    """ValueError unless both are known, and go together."""
    if weights not in WEIGHTS:
        raise ValueError(f"weights: must be one of {', '.join(WEIGHTS)}, got {shown(weights)}")
    known = _activations_beside(weights)
    if activations not in known:
        raise ValueError(
            f"activations: must be one of {', '.join(known)} beside {weights} weights, got {shown(activations)}"
        )


def _activations_beside(weights: str) -> Sequence[str]:
    return [str(bits) for bits in INTEGER_BITS] if weights.startswith("int") else list(LEVELS)


def _suits(kind: str, size: str | None, more: str) -> bool:
    """Whether a word has the numbers that its kind needs, and no others."""
    letters = re.findall("[ksp]", more)
    numbers = [int(number) for number in re.findall(r"\d+", f"{size or ''} {more}")]
    if max(numbers, default=0) > MOST or len(set(letters)) < len(letters):
        return False
    if kind == "res":
        return size is None and not letters
    return (size is not None or kind in ("pool", "avgpool")) and (not letters or kind == "conv")


def _weighted(kind: str, number: int, size: int, weight: Encoding, more: dict[str, int]) -> Layer:
    """A conv or dense layer, the one of this number."""
    if kind == "dense":
        return Dense(name=f"dense_{number}", out_channels=size, weight=weight)
    kernel = more.get("k", 3)
    stride = more.get("s", 1)
    padding = more.get("p", (kernel - 1) // 2)
    return Conv(
        name=f"conv_{number}",
        out_channels=size,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding,) * 4,
        weight=weight,
    )


def _pool(kind: str, size: int, number: int, layers: Sequence[Layer]) -> Layer:
    """A pool behind the weighted layer of this number, the first one or a further one."""
    name = f"pool_{number}"
    others = sum(layer.name.startswith(name) for layer in layers)
    layer_type = MaxPool if kind == "pool" else AvgPool
    return layer_type(name=f"{name}_{others + 1}" if others else name, kernel=(size, size), stride=(size, size))


def _activation(number: int, weights: str, activations: str) -> Layer:
    """The activation behind the weighted layer of this number."""
    if weights.startswith("int"):
        encoding = unsigned(int(activations))
        return Requantise(name=f"requantise_{number}", encoding=encoding, relu=True, fraction=FRACTION)
    return Threshold(name=f"threshold_{number}", levels=LEVELS[activations])


def _forked(number: int) -> list[Layer]:
    """The layers behind the weighted layer of this number if a residual convolution adds to it: integers, signs."""
    requantise = Requantise(name=f"requantise_{number}", encoding=ADDEND, fraction=FRACTION)
    return [requantise, Threshold(name=f"threshold_{number}")]


def _residual(number: int, layers: Sequence[Layer], source: Map, place: int, kinds: tuple[str, str]) -> list[Layer]:
    """The residual convolution of this number, which word ``place`` names, behind ``layers``; ``kinds`` are weights and
    activations."""
    weights, activations = kinds
    if weights.startswith("int") or activations != "1":
        raise ValueError(
            f"layers: word {place} must stand beside binary or ternary weights and activations 1, "
            f"got {weights} and {activations}"
        )
    if len(layers) < 2 or not isinstance(layers[-2], FeatureLayer):
        before = layers[-1].kind if layers else "the input"
        raise ValueError(f"layers: word {place} must follow a conv, dense or res, got {before} before it")
    channels = Network(name="before", input=source, layers=tuple(layers)).output.channels
    conv = _weighted("conv", number, channels, WEIGHTS[weights], {})
    requantise, threshold = _forked(number)
    add = Add(name=f"add_{number}", encoding=SUM, inputs=(requantise.name, layers[-2].name))
    return [conv, requantise, add, threshold]
