"""The state of a training, and how Adam changes it, in exact arithmetic."""

from collections.abc import Mapping

import numpy as np

from bitloom.golden.encoding import Array

from .checkpoint import LARGEST, check_range, check_saved
from .training_block import Params, TrainingBlock

START = 1
"""Purpose of random streams that give the first parameters; streams are named by (seed, purpose, number)."""


class State:
    """All that changes while training: parameters, Adam's two moments of each, Adam's powers, epochs done."""

    def __init__(self, blocks: Mapping[str, TrainingBlock], params: dict[str, dict[str, Array]]) -> None:
        self.epoch = 0
        self.params = params
        self.limits = {(name, key): bounds for name, b in blocks.items() for key, bounds in b.limits.items()}
        self.moments = {
            (a, b): (np.zeros_like(p), np.zeros_like(p)) for a, group in params.items() for b, p in group.items()
        }
        self.power = [1.0, 1.0]

    @classmethod
    def initial(cls, blocks: Mapping[str, TrainingBlock], seed: int) -> "State":
        """The state before the first batch."""
        return cls(blocks, {name: b.initial(seed, START, i) for i, (name, b) in enumerate(blocks.items())})

    def tick(self) -> None:
        """Count one batch. Powers are multiplied up, since pow differs between machines."""
        self.power = [self.power[0] * 0.9, self.power[1] * 0.999]

    def update(self, layer: str, slopes: Params, rate: float) -> None:
        """Change the parameters of one layer as Adam does, within their bounds."""
        for key, slope in slopes.items():
            first, second = self.moments[layer, key]
            first += (slope - first) * 0.1
            second += (slope * slope - second) * 0.001
            size = np.sqrt(second / (1 - self.power[1])) + 2.0**-20
            param = self.params[layer][key]
            param -= first * (rate / (1 - self.power[0])) / size
            if (layer, key) in self.limits:
                np.clip(param, *self.limits[layer, key], out=param)

    def arrays(self) -> dict[str, Array]:
        """The whole state as arrays, for a checkpoint."""
        out = {"epoch": np.array(self.epoch, np.int64), "power": np.array(self.power)}
        for (layer, key), moments in self.moments.items():
            for what, value in zip(("value", "first", "second"), (self.params[layer][key], *moments)):
                out[f"{layer}.{key}.{what}"] = value
        return out

    def restore(self, arrays: Mapping[str, Array], epochs: int) -> None:
        """Take the state from what `arrays` gave; an empty mapping changes nothing.

        ValueError if it is no state after 1 to ``epochs`` epochs: other names, shapes or dtypes, or numbers that
        `update` can't make.
        """
        if not arrays:
            return
        check_saved(self.arrays(), arrays)
        check_range("epoch", arrays["epoch"], 1, epochs)
        check_range("power", arrays["power"], 0, 0.999)
        for layer, key in self.moments:
            check_range(f"{layer}.{key}.second", arrays[f"{layer}.{key}.second"], 0, LARGEST)
            if (layer, key) in self.limits:
                check_range(f"{layer}.{key}.value", arrays[f"{layer}.{key}.value"], *self.limits[layer, key])
        self.epoch = int(arrays["epoch"])
        self.power = [float(p) for p in arrays["power"]]
        for layer, key in self.moments:
            value, first, second = (arrays[f"{layer}.{key}.{what}"] for what in ("value", "first", "second"))
            self.params[layer][key] = value
            self.moments[layer, key] = first, second
