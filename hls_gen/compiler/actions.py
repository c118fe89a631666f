"""Actions: what a lowered layer (lowered_layers.py) computes behind its sums. An action says of which layer it is made,
what it needs of an NPU, and its rule.

    layers behind the sums of a segment --actions_of--> actions

Each layer becomes one action, by the function that a table has for its kind. A layer that the table lacks is refused,
so that no layer is left out. Where an engine computes an action otherwise, the engine's file rewrites the action
(lowering_binary.py, lowering_integer.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Pairwise
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.rounding import rounded
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.golden.window import Window, with_invalid
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.pool_unit import POOLS, PRODUCTS, PoolReduction, Reduction
from bitloom.hls_gen.design.results import ADDITION, FEATURE_UNITS, PAIRS, REQUANTISATION, Column, FeatureUnit

from .pools import reduction_of, thresholds_of
from .ranges import Range, held_bits, with_any_biases, with_any_thresholds, with_biases
from .workloads import Workload


class Action(ABC):
    """A step of a lowered layer behind its sums: one of several."""

    @property
    def needs(self) -> dict[str, int]:
        """The capacities of an NPU that the action needs, by name (hls_gen/compiler/needs.py)."""
        return {}

    @abstractmethod
    def forward(self, values: Array, added: Array | None = None) -> Array:
        """The action's results of (N, H, W, channels) values; ``added`` is the map that an addition adds to them."""


class FeatureAction(Action):
    """An action that makes integers, which it clips: ``low`` and ``high`` are the smallest and the largest."""

    low: int
    high: int

    @property
    def needs(self) -> dict[str, int]:
        return {"skip_bits": held_bits([(self.low, self.high)])}


class ActivationAction(Action):
    """A step that makes results of sums: the first action of a layer."""

    raw: ClassVar[bool] = False
    """Whether results are raw: sums that leave as they are, past the NPU's activation, where the layer has no rows
    then."""
    fraction: int = 0
    """Bits of a bias behind the point."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """Results that a kernel gives."""

    @property
    @abstractmethod
    def of_layer(self) -> Mapping[str, int]:
        """Numbers of the layer by field, of `SUMS` and of the activations in hls_gen/design/results.py that compute it;
        an NPU takes those that it has."""

    @property
    def of_channel(self) -> Mapping[str, Array]:
        """Numbers of channels, one for each result of the layer; as ``of_layer``."""
        return {}

    def unused(self, sums: Range) -> Mapping[str, int]:
        """Numbers of a lane without a channel, where sums are in a range; as ``of_layer``. Others are `Column.none`."""
        return {}

    @abstractmethod
    def biased_range(self, sums: Range) -> Range:
        """Smallest and largest of sums in a range, biases, and sums with their bias; what is behind the point is cut
        off."""

    @abstractmethod
    def roomy_range(self, sums: Range) -> Range:
        """``biased_range`` with room for other weights."""


WIDTHS = {flat.PLACES[name]: name for name in flat.CAPACITIES}
"""Names of capacities by the attribute of an `Npu` that is their value, as a `Column` names it."""


def widths_needed(columns: Mapping[str, Column], numbers: Mapping[str, Any]) -> dict[str, int]:
    """Widths of columns that numbers need, by the name of the capacity. Both are by field."""
    needs = dict[str, int]()
    for field, column in columns.items():
        if name := WIDTHS.get(str(column.bits)):
            needs[name] = max(needs.get(name, 0), column.width_for(numbers[field]))
    return needs


@dataclass(frozen=True)
class Sums(ActivationAction):
    """The sums themselves."""

    raw: ClassVar[bool] = True
    beside_bits: bool
    """Whether other layers of the NPU make bits of sums."""

    @property
    def levels(self) -> int:
        return 1

    @property
    def of_layer(self) -> Mapping[str, int]:
        return {"raw": 1, "low": -int(self.beside_bits), "high": 0}

    def biased_range(self, sums: Range) -> Range:
        return with_biases(sums, np.zeros(1, np.int64))

    def roomy_range(self, sums: Range) -> Range:
        return self.biased_range(sums)

    def forward(self, values: Array, added: Array | None = None) -> Array:
        return values


@dataclass(frozen=True, eq=False)
class Thresholds(ActivationAction):
    """Bits of sums. Where an NPU requantises, a limit L is the requantisation of sum - L to -1..0, of which the sign is
    the bit (docs/decisions/0022)."""

    limit: Array
    """(out_channels, levels) int64: a bit is 1 where the sum is at least that."""

    @property
    def levels(self) -> int:
        return int(self.limit.shape[1])

    @property
    def of_layer(self) -> Mapping[str, int]:
        return {"low": -1, "high": 0}

    @property
    def of_channel(self) -> Mapping[str, Array]:
        return self._by_field(self.limit)

    def unused(self, sums: Range) -> Mapping[str, int]:
        """A limit that is never reached."""
        return self._by_field(sums[1] + 1)

    @staticmethod
    def _by_field(limit: Any) -> dict[str, Any]:
        """Numbers for limits, or for one, by field of `THRESHOLDS` and of `REQUANTISATION`."""
        return {"thresholds": limit, "bias": -limit, "multiplier": 0 * limit + 1, "shift": 0 * limit}

    def forward(self, values: Array, added: Array | None = None) -> Array:
        """(..., out_channels * levels) uint8 bits of (..., out_channels) sums."""
        bits: Array = (values[..., None] >= self.limit).astype(np.uint8).reshape(*values.shape[:-1], -1)
        return bits

    def biased_range(self, sums: Range) -> Range:
        """A limit is a bias of its negative, and one that is never reached is one more than the largest sum."""
        return with_biases(sums, np.append(-self.limit, -1 - sums[1]))

    def roomy_range(self, sums: Range) -> Range:
        return with_any_thresholds(sums)

    def turned(self, kernels: Array, sums: Range) -> "Thresholds":
        """The thresholds where some ``kernels``, (out_channels) bool, change sign, so that their bits become
        complements: x <= L - 1 is -x >= 1 - L. A limit below all ``sums`` is the smallest of these, one that no sum
        reaches is one more than the largest."""
        low, high = sums
        limits = np.where(kernels[:, None], 1 - self.limit, self.limit)
        return Thresholds(np.clip(limits, low, high + 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Scale(FeatureAction, ActivationAction):
    """Requantisation of sums."""

    bias: Array
    multiplier: Array
    shift: Array
    """bias, multiplier, shift: (out_channels, levels) int64."""
    fraction: int = 0
    """Bits of the bias behind the point."""
    rounding: str = "once"
    """As of `bitloom.golden.layers.requantise.Requantise`."""
    low: int
    high: int
    """low, high: smallest and largest result."""

    @classmethod
    def of(cls, model: Model, workload: Workload, layer: Requantise) -> "Scale":
        """The scale of a requantisation."""
        factors = {key: value.astype(np.int64)[:, None] for key, value in model.arrays[layer.name].items()}
        return cls(**factors, fraction=layer.fraction, rounding=layer.rounding, low=layer.low, high=layer.high)

    @property
    def levels(self) -> int:
        return int(self.bias.shape[1])

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Multipliers and shifts as the hardware has them: in lowest terms, unless sums are rounded twice. There the
        first rounding takes a fixed number of bits off the product with the multiplier as it was given."""
        factors = self.multiplier, self.shift
        return factors if self.rounding == "twice" else lowest_terms(*factors)

    @property
    def needs(self) -> dict[str, int]:
        widths = {
            **widths_needed(REQUANTISATION.of_layer, self.of_layer),
            **widths_needed(REQUANTISATION.of_channel, self.of_channel),
        }
        return super().needs | widths | {"bias_fraction_bits": self.fraction}

    @property
    def of_layer(self) -> Mapping[str, int]:
        return {
            "low": self.low,
            "high": self.high,
            "half_even": int(self.rounding == "even"),
            "round_twice": int(self.rounding == "twice"),
        }

    @property
    def of_channel(self) -> Mapping[str, Array]:
        multiplier, shift = self.factors
        return {"bias": self.bias, "multiplier": multiplier, "shift": shift}

    @property
    def whole_bias(self) -> Array:
        """Biases without what is behind the point."""
        whole: Array = self.bias >> self.fraction
        return whole

    def biased_range(self, sums: Range) -> Range:
        return with_biases(sums, self.whole_bias)

    def roomy_range(self, sums: Range) -> Range:
        return with_any_biases(sums, self.whole_bias)

    def forward(self, values: Array, added: Array | None = None) -> Array:
        """(..., out_channels * levels) integers of (..., out_channels) sums."""
        biased = (values[..., None] << self.fraction) + self.bias
        scaled = rounded(biased * self.multiplier, self.shift, self.rounding)
        result: Array = np.clip(scaled, self.low, self.high).reshape(*values.shape[:-1], -1)
        return result


def lowest_terms(multiplier: Array, shift: Array) -> tuple[Array, Array]:
    """Divide factors multiplier / 2^shift until multipliers are as small as can be; products are rounded as before.

    Of multiplier * x + 2^(shift - 1), 2^k is a factor where it is one of the multiplier and k < shift; where k is
    shift, there is nothing to round.

    Parameters
    ----------
    multiplier, shift
        int64 of the same shape; multipliers >= 1, shifts >= 0.

    Returns
    -------
    tuple of ndarray
        Multipliers and shifts; each multiplier is odd, or its shift is 0.
    """
    power = multiplier & -multiplier  # the largest power of two that is a factor
    twos = np.minimum(np.log2(power).astype(np.int64), shift)
    return multiplier >> twos, shift - twos


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitAction(FeatureAction):
    """An action that a feature unit computes: what golden's layer makes of each integer."""

    unit: FeatureUnit
    layer: FeatureLayer
    source: Map
    """layer, source: golden's, and the map that the layer reads."""
    arrays: Mapping[str, Array]
    """The layer's arrays by name, int64."""
    low: int
    high: int
    """low, high: smallest and largest result."""

    @classmethod
    def of(cls, model: Model, workload: Workload, layer: FeatureLayer) -> "UnitAction":
        """The action of a layer that stands behind a requantisation."""
        return cls(
            unit=next(unit for unit in FEATURE_UNITS if unit.layer is type(layer)),
            layer=layer,
            source=model.network.sources(layer)[0],
            arrays={name: array.astype(np.int64) for name, array in model.arrays.get(layer.name, {}).items()},
            low=layer.low,
            high=layer.high,
        )

    def numbers(self, columns: Mapping[str, Column]) -> dict[str, Array]:
        """The layer's numbers by field: of arrays, or of attributes of the layer."""
        of = {name: column.of for name, column in columns.items()}
        return {name: np.asarray(self.arrays.get(of[name], getattr(self.layer, of[name], None))) for name in of}

    @property
    def of_layer(self) -> dict[str, int]:
        """Numbers of the layer, by field of the unit."""
        return {name: number.item() for name, number in self.numbers(self.unit.of_layer).items()}

    @property
    def rows(self) -> dict[str, dict[str, Array]]:
        """The layer's rows of the unit's memory: by the memory's name, columns by field."""
        table = self.unit.table
        return {table.memory: self.numbers(table.columns)} if table else {}

    @property
    def needs(self) -> dict[str, int]:
        columns = {**self.unit.of_layer, **self.unit.of_channel, **(self.unit.table.columns if self.unit.table else {})}
        widths = widths_needed(columns, self.numbers(columns))
        return super().needs | widths | {self.unit.capacity: self.unit.of_a_layer}

    def forward(self, values: Array, added: Array | None = None) -> Array:
        return self.layer.forward_of([values], self.arrays, [self.source])


@dataclass(frozen=True, kw_only=True, eq=False)
class Addition(FeatureAction):
    """An addition or a product of two maps, value by value, as golden's layer has it: of the map that a lowered layer
    has requantised, and of one that waits for it."""

    adds: str
    """Name of the lowered layer whose result is added."""
    layer: Pairwise
    """Golden's."""
    arrays: Mapping[str, Array]
    """The layer's by name, int64; of two multipliers that of the requantised map comes first."""
    low: int
    high: int
    """low, high: smallest and largest result."""

    @classmethod
    def of(cls, model: Model, workload: Workload, layer: Pairwise) -> "Addition":
        """The action of a layer that joins the workload's own map and the one that the workload adds."""
        assert workload.segment is not None
        assert workload.adds is not None
        tail = workload.segment.tail
        is_first = model.network.reads[layer.name].index(tail[tail.index(layer) - 1].name) == 0
        arrays = {name: array.astype(np.int64) for name, array in model.arrays[layer.name].items()}
        arrays["multiplier"] = arrays["multiplier"][:: 1 if is_first else -1]
        return cls(adds=workload.adds, layer=layer, arrays=arrays, low=layer.low, high=layer.high)

    @property
    def needs(self) -> dict[str, int]:
        return super().needs | widths_needed(ADDITION.of_layer, self.of_layer)

    @property
    def of_layer(self) -> dict[str, int]:
        """Numbers of the layer, by field of `ADDITION`; a shift that is larger than an NPU's most is that one there. A
        layer with one multiplier has it as ``factor_skipped``, and 0 for the other one."""
        *kept, skipped = self.arrays["multiplier"].tolist()
        return {
            **{mark: int(isinstance(self.layer, pair)) for pair, mark in PAIRS.items() if mark},
            "factor_kept": sum(kept),
            "factor_skipped": skipped,
            **{name: int(self.arrays[name][0]) for name in ("bias", "shift")},
            "low": self.low,
            "high": self.high,
        }

    def forward(self, values: Array, added: Array | None = None) -> Array:
        assert added is not None  # the caller knows which map that is
        return self.layer.forward_of([values.astype(np.int64), added.astype(np.int64)], self.arrays, ())


@dataclass(frozen=True)
class Sign(Action):
    """Bits of integers."""

    negative: bool = False
    """Whether a bit is 1 where the integer is below 0; else it is 1 where the integer is at least 0."""

    def forward(self, values: Array, added: Array | None = None) -> Array:
        bits: Array = (values < 0 if self.negative else values >= 0).astype(np.uint8)
        return bits


@dataclass(frozen=True, kw_only=True)
class WindowAction(Action):
    """An action that the pool unit computes: a value of each channel for each window."""

    window: Window
    reduction: Reduction

    def forward(self, values: Array, added: Array | None = None) -> Array:
        n, *size, channels = values.shape
        positions = self.window.positions(size[0], size[1])
        taps = with_invalid(values)[:, positions]
        return self.of_taps(taps, positions >= 0).reshape(n, *self.window.output_size(size[0], size[1]), channels)

    @abstractmethod
    def of_taps(self, taps: Array, valid: Array) -> Array:
        """(N, outputs, channels) results of the taps (N, outputs, taps, channels) that windows read, which are 0 where
        they are not ``valid`` (outputs, taps)."""


@dataclass(frozen=True, kw_only=True)
class PoolAction(WindowAction):
    """A pool over results."""

    reduction: PoolReduction

    @classmethod
    def of(cls, model: Model, workload: Workload, layer: Pool) -> "PoolAction":
        """The pool of the pool unit."""
        return cls(window=layer.window, reduction=reduction_of(layer))

    def of_taps(self, taps: Array, valid: Array) -> Array:
        return self.reduction.layer.reduced(taps, valid)


@dataclass(frozen=True, kw_only=True, eq=False)
class Depthwise(WindowAction):
    """A depthwise convolution behind a lowered layer of the integer engine, computed by a pool unit with weights:

    sum    = over valid taps of feature[c] * weight[tap, c], for each channel c
    result = requantised sum (golden/layers/requantise.py)
    """

    reduction: Reduction = PRODUCTS
    name: str
    """The convolution's."""
    weight: Array
    """(taps, channels) int64."""
    scale: Scale
    sum_range: Range
    """Smallest and largest sum, for any features and weights."""

    @property
    def needs(self) -> dict[str, int]:
        return self.scale.needs

    @cached_property
    def biased_range(self) -> Range:
        """Smallest and largest sum, bias, and sum plus bias, for any features; what is behind the point is cut off."""
        return self.scale.biased_range(self.sum_range)

    @cached_property
    def roomy_range(self) -> Range:
        """``biased_range`` with room for other biases."""
        return self.scale.roomy_range(self.sum_range)

    def of_taps(self, taps: Array, valid: Array) -> Array:
        return self.scale.forward((taps * self.weight).sum(axis=2))


def actions_of(model: Model, workload: Workload, tail: tuple[Layer, ...]) -> list[Action]:
    """The actions of the layers behind the sums of a workload, behind `Sums` where sums are the result. Where a pool is
    the first of these layers, its action is the last: engines pool what thresholds make.

    ValueError if there is no function for a layer.
    """
    if tail and isinstance(tail[0], Pool):
        tail = (*tail[1:], tail[0])
    for layer in tail:
        if type(layer) not in FUNCTIONS:
            raise ValueError(f"{layer.name}: nothing lowers a {layer.kind}")
    of_tail = [FUNCTIONS[type(layer)](model, workload, layer) for layer in tail]
    return [Sums(beside_bits=workload.binary), *of_tail] if workload.raw else of_tail


def bits_of(model: Model, workload: Workload, layer: Threshold) -> Thresholds | Sign:
    """The action that makes bits: the sign of requantised values, or thresholds of sums. Its bits are 1 where a sum is
    large: of x <= T, the complement is computed, x >= T + 1."""
    assert workload.segment is not None
    if workload.segment.behind_sums(Requantise) is not None:
        return Sign()
    down = model.arrays[layer.name]["direction"][:, None] < 0
    return Thresholds(thresholds_of(model, workload.segment, layer) + down)


FUNCTIONS: dict[type[Layer], Callable[[Model, Workload, Any], Action]] = {
    Threshold: bits_of,
    Requantise: Scale.of,
    **{layer: PoolAction.of for pool in POOLS for layer in pool.layers},
    **{unit.layer: UnitAction.of for unit in FEATURE_UNITS},
    **{pair: Addition.of for pair in PAIRS},
}
"""By kind of layer, the function that makes its action; engine_rules.py says what each engine takes."""
