"""A network as lowered layers (hls_gen/compiler/lowered_layers.py), each of the engine of the NPU that computes it.

    model --workloads.py--> workloads --mapping.py--> workloads on NPUs, with copies and ways --this--> lowered layers

A workload is lowered by lowering_binary.py or lowering_integer.py. Between lowered layers of different engines lie
bits, some of which are complements; the reader's weights know which. A network is lowered once for its NPUs: whatever
their memories, the lowered layers are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.network import Model
from bitloom.golden.packing import to_bits
from bitloom.golden.window import Pair
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_window import SplitWindow

from . import lowering_binary, lowering_integer
from .choices import CompileChoices
from .engine_rules import BINARY_ENGINE, Engine
from .input_maps import is_input
from .lowered_layers import FormerTaps, LoweredLayer, Multiply
from .mapping import Placed, placed
from .schedule import Schedule, Stage, schedule
from .taps import Taps
from .ways import MapWay
from .workloads import CutTarget, FormedWorkload, Workload, segmented


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """A model as lowered layers. Only the input may have planes; other maps are bits, or integers between integer
    layers."""

    model: Model
    """The model that was lowered."""
    source: Map
    """The input as the first lowered layer reads it (golden/flatten.py)."""
    layers: tuple[LoweredLayer, ...]
    """Each behind those that it reads and adds: the order in which they are computed."""
    input_bits: int
    """Planes of an integer input to a binary layer, without the constant one. 0 for a bipolar input, whose channels are
    thermometer bits, and for an input that is made binary."""
    binariser: Array | None = None
    """(channels,) int64 or None: thresholds that make the input binary before the first lowered layer (spec A9)."""
    workloads: tuple[Workload, ...] = ()
    """Workloads from which the layers were lowered, one for one."""
    mapping: tuple[int, ...] = ()
    """NPU of each layer."""
    ways: Mapping[str, MapWay] = field(default_factory=dict)
    """How each layer's map gets to who needs it, by the layer's name."""
    _schedules: dict[str, Schedule] = field(default_factory=dict, init=False)
    _formed: dict[frozenset[tuple[str, FormedWorkload | None]], "Lowered"] = field(default_factory=dict, init=False)
    _split_pools: dict[frozenset[tuple[str, SplitWindow]], "Lowered"] = field(default_factory=dict, init=False)

    @property
    def outputs(self) -> list[str]:
        """The layers whose maps leave, in the order of the network's outputs."""
        names = {workload.output: workload.name for workload in self.workloads if workload.output is not None}
        return [names[number] for number in sorted(names)]

    @property
    def npu_of(self) -> dict[str, int]:
        """NPU of each layer, by its name."""
        return {layer.name: n for layer, n in zip(self.layers, self.mapping)}

    def schedule(self, map_order: str) -> Schedule:
        """Orders of all maps and tables of all layers in a map order (hls_gen/compiler/schedule)."""
        if map_order not in self._schedules:
            self._schedules[map_order] = schedule(_stages(self.layers), map_order)
        return self._schedules[map_order]

    def with_formed_taps(self, names: frozenset[str]) -> "Lowered":
        """The lowered layers, those of these names behind window formers (hls_gen/compiler/formed_taps.py): each then
        reads a map of windows, whose channels are taps times channels. Their workloads must have formed taps."""
        return self._behind_formers(
            {workload.name: workload.with_former for workload in self.workloads if workload.name in names}
        )

    def with_lines(self, names: frozenset[str]) -> "Lowered":
        """The lowered layers, those of these names behind line formers (hls_gen/compiler/lines.py): each then reads a
        map with a position for each window of a line, whose channels are columns of the kernel times channels."""
        return self._behind_formers(
            {workload.name: workload.with_lines for workload in self.workloads if workload.name in names}
        )

    def _behind_formers(self, formed: Mapping[str, FormedWorkload | None]) -> "Lowered":
        """The lowered layers, those that are named behind formers, with what their workloads are there."""
        if not formed:
            return self
        key = frozenset(formed.items())
        if key not in self._formed:
            layers = tuple(
                _layer_behind(layer, formed[layer.name]) if layer.name in formed else layer for layer in self.layers
            )
            self._formed[key] = replace(self, layers=layers)
        return self._formed[key]

    def with_split_pools(self, splits: Mapping[str, SplitWindow]) -> "Lowered":
        """The lowered layers, those that are named with line formers in front of their pools, which split their windows
        so (hls_gen/compiler/lines.py)."""
        key = frozenset(splits.items())
        if key not in self._split_pools:
            layers = tuple(replace(layer, split_pool=splits.get(layer.name)) for layer in self.layers)
            self._split_pools[key] = replace(self, layers=layers)
        return self._split_pools[key]

    def input_features(self, images: Array) -> Array:
        """The features that the first lowered layer reads, where its taps are not formed.

        Parameters
        ----------
        images : (N, H, W, C) integers
            Of the network's input map.

        Returns
        -------
        (N, H, W, channels, planes) uint8 or (N, H, W, C) integers
            Bits for the binary engine, integers for the integer engine.
        """
        images = images.reshape(len(images), *self.source.shape)
        if not self.layers[0].binary:
            return images
        if self.binariser is not None:
            return (images >= self.binariser).astype(np.uint8)[..., None]
        if not self.input_bits:
            return to_bits(images, self.source.encoding).reshape(*images.shape[:3], -1, 1)
        planes: Array = (images.astype(np.int64)[..., None] >> np.arange(self.input_bits)) & 1
        features: Array = np.concatenate([planes, np.ones_like(planes[..., :1])], axis=-1)
        return features.astype(np.uint8)

    def forward(self, images: Array) -> Array:
        """Results of the layers whose maps leave for (N, H, W, C) images: of several the values one behind the other,
        as `bitloom.golden.layers.outputs` has them; rules: `LoweredLayer`."""
        self.model.check_images(images)
        results = dict(zip([layer.name for layer in self.layers], self.trace(images)))
        first, *others = [results[name] for name in self.outputs]
        if not others:
            return first
        flat = [values.reshape(len(images), 1, 1, -1) for values in (first, *others)]
        return np.concatenate(flat, axis=3)

    def trace(self, images: Array) -> list[Array]:
        """Result of every lowered layer for (N, H, W, C) images, in the order of the lowered layers."""
        results: dict[str, Array] = {}
        kept: dict[str, Array] = {}  # what additions add
        makers = {layer.name: layer for layer in self.layers}
        for layer in self.layers:
            maker = makers.get(layer.reads)
            features = self.input_features(images) if maker is None else results[layer.reads]
            features = features if layer.joins is None else np.concatenate([features, results[layer.joins]], axis=3)
            if maker is not None and layer.binary:
                features = features[..., None]
            elif maker is not None and maker.makes_bits:
                features = 2 * features.astype(np.int64) - 1
            if layer.former_taps is not None:
                beside = np.zeros(features.shape[3:], np.int64)
                if maker is None and self.input_bits:
                    beside[..., -1] = 1  # the constant plane: the value is 0
                features = layer.former_taps.windows(features, beside)
            of_steps = layer.results(features, kept[layer.adds] if layer.adds else None)
            kept[layer.name] = of_steps[layer.waiting]
            results[layer.name] = of_steps[-1]
        return list(results.values())


def lower(placed_model: Placed) -> Lowered:
    """Lower the workloads of a network, each for the engine of its NPU.

    Raises
    ------
    ValueError
        If the arrays are such that an engine can't compute a workload. The message names the layer, the rule and the
        value.
    """
    segmented_model = placed_model.cut_model.segmented_model
    model = segmented_model.model
    source = model.network.input
    limits = None
    complement = {INPUT: np.zeros(source.channels * source.encoding.bits, bool)}
    if segmented_model.binariser is not None:
        bits = segmented_model.target.binariser_bits
        limits, complement[INPUT] = lowering_binary.binariser(model, segmented_model.binariser, bits)
    layers: list[LoweredLayer] = []
    complement |= {workload.reads: complement[INPUT] for workload in placed_model.workloads if is_input(workload.reads)}
    for workload in placed_model.workloads:
        inverted = np.concatenate([complement[name] for name in (workload.reads, workload.joins) if name])
        layer, complement[workload.name] = _lowered(model, workload, inverted)
        layers.append(layer)
    if complement[layers[-1].name].any():
        _refuse_complements(model.network.layers[-1].name, placed_model.workloads[-1])
    first = placed_model.workloads[0]
    return Lowered(
        model=segmented_model.given,
        source=source,
        layers=tuple(layers),
        input_bits=first.planes,
        binariser=limits,
        workloads=tuple(placed_model.workloads),
        mapping=tuple(placed_model.mapping),
        ways=placed_model.ways,
    )


def lowered_for(model: Model, npus: Sequence[Npu], choices: CompileChoices | None = None) -> Lowered:
    """Lower a network for NPUs; parameters and errors are those of `placed`, errors also those of `lower`."""
    return lower(placed(model, npus, choices))


def _refuse_complements(last: str, workload: Workload) -> NoReturn:
    """Raise ValueError: the last workload makes complements, which no weights of a next layer take back."""
    tail = workload.segment.tail if workload.segment else ()
    if any(isinstance(layer, MinPool) for layer in tail):
        raise ValueError(
            f"{last}: a min pool gives complements, which only the weights of a next layer take back, got one in the "
            "last layer"
        )
    after = "a max pool" if any(isinstance(layer, MaxPool) for layer in tail) else "accumulate or_words"
    raise ValueError(f"{last}: direction after {after} must be 1 in the last layer, got -1")


def _lowered(model: Model, workload: Workload, inverted: Array) -> tuple[LoweredLayer, Array]:
    """The lowered layer of a workload, and which of the bits that it makes are complements; ``inverted``: which of the
    bits that it reads are complements."""
    if workload.segment is None:
        return (lowering_binary.copy if workload.binary else lowering_integer.copy)(workload), inverted
    if workload.binary:
        return lowering_binary.binary_layer(model, workload, inverted)
    return lowering_integer.integer_layer(model, workload, inverted)


def _layer_behind(layer: LoweredLayer, formed: FormedWorkload | None) -> LoweredLayer:
    """A lowered layer behind a former."""
    assert formed is not None
    split, workload = formed
    arithmetic = layer.arithmetic
    if isinstance(arithmetic, Multiply):
        weight = split.dealt(arithmetic.weight, axis=1)
        arithmetic = Multiply(weight=weight.reshape(layer.out_channels, split.tuples, -1))
    else:
        visits = arithmetic.visits
        arithmetic = replace(
            arithmetic,
            weight=_by_visit(arithmetic.weight, split, visits),
            magnitude=None if arithmetic.magnitude is None else _by_visit(arithmetic.magnitude, split, visits),
            tap_offset=arithmetic.tap_offset * split.tuple_taps,
        )
    workload = replace(workload, reads=layer.reads)  # which may be a copy of the map that the network has
    behind = LoweredLayer.of(workload, arithmetic, layer.actions, layer.sum_range)
    return replace(behind, former_taps=FormerTaps(layer.height, layer.width, split))


def _by_visit(weight: Array, split: SplitWindow, visits: int) -> Array:
    """(O, taps * visits, channels, planes) -> (O, tuples * visits, tuple_taps * channels, planes)."""
    kernels, _, channels, planes = weight.shape
    of_tuples = split.dealt(weight.reshape(kernels, -1, visits, channels, planes), axis=1)
    return of_tuples.swapaxes(2, 3).reshape(kernels, split.tuples * visits, -1, planes)


def lower_alone(
    model: Model, target: CutTarget | None = None, *, engines: Engine | Sequence[Engine] = BINARY_ENGINE
) -> Lowered:
    """Lower a model for engines, without NPUs: maps have no ways, and none is copied.

    Parameters
    ----------
    model : Model
        The layers with their arrays; what the host computes behind them (`host_tail.split`) is left out.
    target : CutTarget, optional
        By default that of no bit planes but those that the input needs, no binariser and no depthwise convolutions.
    engines : Engine or sequence of Engine
        One for all weighted layers, or one for each in the order in which they are computed; where the target fuses
        depthwise convolutions, one for each workload that is left then (`bitloom.hls_gen.compiler.depthwise.fused`).

    Raises
    ------
    ValueError
        If an engine can't compute its layers. The message names the layer, the rule and the value.
    """
    segmented_model = segmented(model, target or CutTarget())
    cut_model = segmented_model.cut([engines] * len(segmented_model.names) if isinstance(engines, Engine) else engines)
    return lower(Placed(cut_model, cut_model.workloads, [0] * len(cut_model.workloads), {}))


def _stages(layers: Sequence[LoweredLayer]) -> list[Stage]:
    """The windows of all lowered layers, as hls_gen.compiler.schedule wants them: each convolution, and its pool if it
    has one."""
    stages = list[Stage]()
    last = {layer.reads: layer.reads for layer in layers if is_input(layer.reads)}  # lowered layer -> its last stage
    for layer in layers:
        reads = last[layer.reads]
        if layer.former_taps:
            former = layer.former_taps
            size = former.height, former.width
            stages.append(_stage(array_former_name(layer), False, size, Taps(former.split.formed), reads))
            reads = array_former_name(layer)
        adds = layer.adds and (layer.adds if layer.binary else last[layer.adds])  # bits: integers before a pool
        joins = last[layer.joins] if layer.joins else ""
        stages.append(_stage(layer.name, True, (layer.height, layer.width), layer.window, reads, adds or "", joins))
        if split := layer.pooled_window:
            reads = layer.name
            if layer.split_pool:
                stages.append(_stage(pool_former_name(layer), False, stages[-1].output_size, Taps(split.formed), reads))
                reads = pool_former_name(layer)
            weighted = layer.depthwise is not None
            stages.append(_stage(pool_name(layer), weighted, stages[-1].output_size, Taps(split.rest), reads))
        last[layer.name] = stages[-1].name
    return stages


def pool_name(layer: LoweredLayer) -> str:
    """Name of the stage of a lowered layer's pool; no layer has that name."""
    return f"{layer.name}.pool"


def pool_former_name(layer: LoweredLayer) -> str:
    """Name of the stage of the line former in front of a lowered layer's pool; no layer has that name."""
    return f"{layer.name}.line"


def array_former_name(layer: LoweredLayer) -> str:
    """Name of the stage of the window former, or line former, in front of a lowered layer; no layer has that name."""
    return f"{layer.name}.former"


def _stage(name: str, weighted: bool, size: Pair, window: Taps, reads: str, adds: str = "", joins: str = "") -> Stage:
    """A stage that reads a map of ``size``."""
    height, width = size
    return Stage(
        name=name, weighted=weighted, height=height, width=width, window=window, reads=reads, adds=adds, joins=joins
    )
