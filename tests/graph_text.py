"""Networks of tests as text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network

Builders = Mapping[str, Callable[..., Layer | Iterable[Layer]]]
ENCODINGS = {"s": signed, "u": unsigned, "b": bipolar}
WORDS: dict[str, Any] = {"ternary": TERNARY, "bipolar": BIPOLAR, "yes": True}
SIDES = {"kernel": 2, "stride": 2, "padding": 4, "dilation": 2}
"""Values of a layer that are alike on all sides where a text has one number."""


def layer_of(kind: type[Layer], fields: tuple[str, ...], name: str, *values: Any, **named: Any) -> Layer:
    """A layer of ``values``, which are names of maps that it reads, and values of its ``fields``, in their order."""
    inputs = tuple(value for value in values if isinstance(value, str))
    given = dict(zip(fields, (value for value in values if not isinstance(value, str)))) | named
    sides = {key: (given[key],) * count for key, count in SIDES.items() if isinstance(given.get(key), int)}
    return kind(name=name, inputs=inputs, **given | sides)


def act(name: str, *values: Any, **named: Any) -> Layer:
    """A requantisation where an encoding is given, else a threshold."""
    of_integers = any(not isinstance(value, str) for value in values)
    return BUILDERS["requantise" if of_integers else "threshold"](name, *values, **named)


WINDOW = ("kernel", "stride", "padding")
CONVOLUTION = ("out_channels", "kernel", "weight")
KINDS: tuple[tuple[type[Layer], tuple[str, ...]], ...] = (
    (Conv, CONVOLUTION),
    (DepthwiseConv, CONVOLUTION),
    (GroupedConv, CONVOLUTION),
    (Dense, ("out_channels", "weight")),
    (Threshold, ()),
    *((kind, ("encoding",)) for kind in (Requantise, Lookup, Add, Affine)),
    *((kind, WINDOW) for kind in (MaxPool, MinPool, AvgPool, SumPool)),
    (Concat, ()),
    (Outputs, ()),
)
BUILDERS: dict[str, Callable[..., Layer]] = {kind.kind: partial(layer_of, kind, fields) for kind, fields in KINDS}
BUILDERS |= {"act": act, "depthwise": BUILDERS["depthwise_conv"]}
"""Layers by the kinds' names: "conv conv_1 8 3x3 s8 padding=1" is a convolution of 8 kernels of 3 x 3 weights."""


def network_of(source: str | Map, *parts: Any, name: str = "net", builders: Builders = BUILDERS) -> Network:
    """The network whose image is ``source``, where it is text as `map_of` has it, and whose layers are ``parts``, as
    `layers_of` has them."""
    image = map_of(source) if isinstance(source, str) else source
    return Network(name=name, input=image, layers=layers_of(parts, builders))


def map_of(text: str) -> Map:
    """Height, width, channels and encoding: "5x4x3 s8"; bits without an encoding."""
    (height, width, channels), encoding = (*map(_value, text.split()), BIPOLAR)[:2]
    return Map(height=height, width=width, channels=channels, encoding=encoding)


def layers_of(parts: Iterable[Any], builders: Builders = BUILDERS) -> tuple[Layer, ...]:
    """The layers of ``parts``, each of which is a layer, several, or a text that ``builders`` understand.

    A text has the names and arguments of layers, with commas between: "conv_2 act_1 12 stride=2, sum bits_3 act_2" is
    conv("conv_2", "act_1", 12, stride=2) and sum("bits_3", "act_2"). The builder is what the name begins with, or the
    word in front of the name. "3x2", "1/0/0/1" and "-3..5" are tuples, "s8", "u8" and "b3" encodings of signed,
    unsigned and bipolar values.
    """
    return tuple(_layers(parts, builders))


def _layers(parts: Iterable[Any], builders: Builders) -> Iterator[Layer]:
    for part in parts:
        if isinstance(part, Layer):
            yield part
        elif isinstance(part, str):
            yield from _layers((_built(text.split(), builders) for text in part.split(",") if text.strip()), builders)
        else:
            yield from _layers(part, builders)


def _built(words: list[str], builders: Builders) -> Layer | Iterable[Layer]:
    builder = words[0] if words[0] in builders else words[0].partition("_")[0]
    if words[0] in builders and len(words) > 1 and "=" not in words[1] and isinstance(_value(words[1]), str):
        words = words[1:]
    named = dict(word.split("=") for word in words if "=" in word)
    arguments = [_value(word) for word in words[1:] if "=" not in word]
    return builders[builder](words[0], *arguments, **{name: _value(word) for name, word in named.items()})


def _value(word: str) -> Any:
    if re.fullmatch(r"-?\d+((x|/|\.\.)-?\d+)*", word):
        numbers = tuple(int(number) for number in re.findall(r"-?\d+", word))
        return numbers if len(numbers) > 1 else numbers[0]
    if re.fullmatch(r"[sub]\d+", word):
        return ENCODINGS[word[0]](int(word[1:]))
    return WORDS.get(word, word)
