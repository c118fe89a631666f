"""Layers of test networks as text."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bitloom.golden.layer import Layer

Builders = Mapping[str, Callable[..., Layer | Iterable[Layer]]]


def layers_of(parts: Iterable[Any], builders: Builders) -> tuple[Layer, ...]:
    """The layers of ``parts``, each of which is a layer, several, or a text that ``builders`` understand.

    A text has the names and arguments of layers, with commas between: "conv_2 act_1 12 stride=2, sum bits_3 act_2" is
    conv("conv_2", "act_1", 12, stride=2) and sum("bits_3", "act_2"). The builder is what the name begins with, or the
    word in front of the name.
    """
    return tuple(_layers(parts, builders))


def _layers(parts: Iterable[Any], builders: Builders) -> Iterator[Layer]:
    for part in parts:
        if isinstance(part, Layer):
            yield part
        elif isinstance(part, str):
            yield from _layers((_built(text.split(), builders) for text in part.split(",")), builders)
        else:
            yield from _layers(part, builders)


def _built(words: list[str], builders: Builders) -> Layer | Iterable[Layer]:
    builder = words.pop(0) if words[0] in builders else words[0].partition("_")[0]
    named = dict(word.split("=") for word in words if "=" in word)
    arguments = [_number(word) for word in words[1:] if "=" not in word]
    return builders[builder](words[0], *arguments, **{name: _number(word) for name, word in named.items()})


def _number(word: str) -> int | str:
    return int(word) if word.isdigit() else word
