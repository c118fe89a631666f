"""Flat names: what a person calls a value of an NPU, wherever its parts lie.

Command lines, files of foldings and manifests name values of an NPU by one flat list of names (``pfp``, ``pool_words``,
``skip_words``). Here stands, once, which field of which part each name is.

Example: ``pool_words`` is ``npu.pool_unit.words``, and ``pool`` says whether there is a pool unit at all.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from .array import BinaryArray, IntegerArray
from .former import Former, FormerSizes
from .loader import Loader
from .parts import Part
from .pool_unit import PoolUnit, PoolWeights
from .ports import Binariser, Ports
from .results import Results
from .rules import require
from .sequencer import Sequencer
from .stores import SkipStore, Stores

ENGINES: dict[str, type[BinaryArray] | type[IntegerArray]] = {"binary": BinaryArray, "integer": IntegerArray}
"""The array of each engine."""
CLASSES: dict[str, type[Part]] = {
    "array": BinaryArray,
    "former": Former,
    "former.sizes": FormerSizes,
    "sequencer": Sequencer,
    "results": Results,
    "pool_unit": PoolUnit,
    "pool_unit.weights": PoolWeights,
    "stores": Stores,
    "stores.skip": SkipStore,
    "ports": Ports,
    "ports.binariser": Binariser,
    "loader": Loader,
}
"""The part of each place; in place of an array there may be an `IntegerArray`."""
CHOSEN = {
    "engine": "array.engine",
    "feature_bits": "array.feature_bits",
    "weight_bits": "array.weight_bits",
    "kfp": "array.kfp",
    "kgp": "array.kgp",
    "pfp": "pool_unit.pfp",
    "ol": "results.ol",
    "accumulate": "array.accumulate",
    "word_lanes": "array.word_lanes",
    "collect": "array.collect",
    "accumulators": "array.accumulators",
    "planes": "array.planes",
    "shift_bits": "array.shift_bits",
    "binariser_bits": "ports.binariser.bits",
    "buffer_words": "ports.buffer_words",
    "kernel_ram": "array.kernel_ram",
    "inlets": "ports.inlets",
    "outlets": "ports.outlets",
    "pool": "pool_unit",
    "raster": "sequencer.raster",
    "stream_weights": "loader.stream_weights",
    "kernels_per_multiplier": "array.kernels_per_multiplier",
    "one_memory": "array.one_memory",
    "kernel_binariser": "array.kernel_binariser",
    "depthwise": "pool_unit.weights",
    "window_former": "former",
    "lut_products": "results.lut_products",
}
"""The folding: what a person or the search chooses, and where it lies. A name of a part says whether there is one."""
CAPACITIES = {
    "acc_bits": "array.acc_bits",
    "multiplier_bits": "results.multiplier_bits",
    "bias_fraction_bits": "results.bias_fraction_bits",
    "half_even": "results.half_even",
    "round_twice": "results.round_twice",
    "lanes_per_weight": "array.lanes_per_weight",
    "lane_step": "array.lane_step",
    "binariser_rows": "ports.binariser.rows",
    "layers": "loader.layers",
    "windows": "sequencer.windows",
    "window_taps": "sequencer.window_taps",
    "groups": "sequencer.groups",
    "levels": "results.levels",
    "input_words": "sequencer.input_words",
    "tuple_words": "sequencer.tuple_words",
    "pool_words": "pool_unit.words",
    "pool_tuple_words": "pool_unit.tuple_words",
    "taps": "sequencer.taps",
    "olds": "sequencer.olds",
    "jumps": "sequencer.jumps",
    "aheads": "sequencer.aheads",
    "tuple_parts": "sequencer.tuple_parts",
    "pool_taps": "pool_unit.taps",
    "pool_olds": "pool_unit.olds",
    "kernel_rows": "array.kernel_rows",
    "threshold_rows": "results.threshold_rows",
    "map_words": "stores.map_words",
    "pool_jumps": "pool_unit.weights.jumps",
    "pool_kernel_rows": "pool_unit.weights.rows",
    "pool_scale_rows": "pool_unit.weights.scale_rows",
    "skip_words": "stores.skip.words",
    "joined_words": "stores.skip.joined_words",
    "skip_bits": "stores.skip.bits",
    "skips_onward": "stores.skip.onward",
    "add_factor_bits": "stores.skip.factor_bits",
    "add_bias_bits": "stores.skip.bias_bits",
    "former_channels": "former.sizes.channels",
    "former_column": "former.sizes.column",
    "former_columns": "former.sizes.columns",
    "former_line": "former.sizes.line",
}
"""Capacities: how large memories are and how far counters reach, as sizing finds them for networks."""
PLACES = CHOSEN | CAPACITIES
"""Where the value of each flat name lies."""
SWITCHES = {
    "former": "window_former",
    "former.sizes": "former_column",
    "pool_unit": "pool",
    "pool_unit.weights": "depthwise",
    "stores.skip": "skip_words",
    "ports.binariser": "binariser_bits",
}
"""Parts that an NPU may lack, and the flat name whose value says whether it has them."""
MEANINGS = {
    "former": "a window former",
    "former.sizes": "a window former with sizes",
    "pool_unit": "a pool unit",
    "pool_unit.weights": "a pool unit with weights (depthwise)",
    "stores.skip": "a skip store",
    "ports.binariser": "a binariser",
}
"""What messages call these parts."""
RARE_PARTS = ("former.sizes", "pool_unit.weights", "stores.skip")
"""Parts whose values are written to files only where they aren't at their defaults."""


def _owner(name: str) -> tuple[str, str]:
    """The part in which a name lies, and the field there: ("pool_unit", "words") of pool_words. Of a switch that is
    the name of a part, the part's own place and nothing."""
    place = PLACES[name]
    part, _, what = place.rpartition(".")
    return (place, "") if place in CLASSES else (part, what)


OWNERS = {name: _owner(name) for name in PLACES}
"""Part and field of each flat name."""


def _field(name: str) -> "Field[Any] | None":
    """The dataclass field of a flat name; None of a switch that is no number, and of ``engine``."""
    part, what = OWNERS[name]
    for owner in (CLASSES[part], IntegerArray) if part == "array" else (CLASSES[part],):
        for item in fields(owner):
            if item.name == what:
                return item
    return None


def _default(name: str) -> Any:
    """The value of a name that is not given."""
    given = {"engine": "binary", "pool": True, "depthwise": False, "window_former": False}
    if name in given:
        return given[name]
    if name in ("feature_bits", "weight_bits"):
        return 1
    item = _field(name)
    return 0 if item is None or item.default is MISSING else item.default


DEFAULTS = {name: _default(name) for name in PLACES}
"""The value of each flat name where nothing is said; 0 of a number that is a switch."""
ABSENT = {"pfp": 1}
"""Values of names whose part is not there, where they aren't the defaults."""
OFF = {name: 0 if OWNERS[name][1] else False for name in SWITCHES.values()}
"""Values of the switches that say that there is no such part."""


def _is_rare(name: str) -> bool:
    """Whether a name is written to files only where its value isn't the default."""
    item = _field(name)
    rare = item is not None and bool(item.metadata.get("written_if_set"))
    return rare or OWNERS[name][0] in RARE_PARTS or name == "window_former"


RARE = frozenset(name for name in PLACES if _is_rare(name))
"""Names that are written to files only where their value isn't the default: their features are rare."""
NAMES = {part: tuple(name for name in PLACES if OWNERS[name][0].split(".")[0] == part) for part in CLASSES}
"""The flat names of each part, those of the parts inside it too."""


def part_of(part: str, values: Mapping[str, Any], given: frozenset[str]) -> Any:
    """Make a part of an NPU.

    Parameters
    ----------
    part
        Name of one of the eight parts.
    values
        Values by flat name. Names that are missing have their defaults; names of other parts are left alone.
    given
        Names that somebody asked for: their values must have a place. Others may lose it, as ``pfp`` does where the
        pool unit goes.

    Returns
    -------
    Part or None
        The part.

    Raises
    ------
    ValueError
        A value is out of its range, or given for a part that isn't there. One line: name, rule and value.
    """
    if part == "array":
        return _array(values, given)
    return _made(part, values, given)


def _array(values: Mapping[str, Any], given: frozenset[str]) -> BinaryArray | IntegerArray:
    """The array of the engine."""
    engine = values.get("engine", "binary")
    require(isinstance(engine, str) and engine in ENGINES, "engine must be binary or integer", repr(engine))
    cls = ENGINES[engine]
    has = {item.name for item in fields(cls)}
    chosen: dict[str, Any] = {}
    for name in NAMES["array"]:
        what = OWNERS[name][1]
        if what in has:
            chosen[what] = values.get(name, DEFAULTS[name])
        elif name in given and name != "engine":
            fixed = getattr(cls, what)
            require(_same(values[name], fixed), f"{name} must be {fixed} for engine {engine}", values[name])
    return cls(**chosen)


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same; True is not 1."""
    return type(value) is type(other) and bool(value == other)


def _made(place: str, values: Mapping[str, Any], given: frozenset[str]) -> Any:
    """The part of a place with the parts inside it; None where the switch is off."""
    switch = SWITCHES.get(place)
    on = switch is None or values.get(switch, DEFAULTS[switch])
    if switch and OWNERS[switch][1] == "":
        require(isinstance(on, bool), f"{switch} must be True or False", repr(on))
    names = [name for name in NAMES[place.split(".")[0]] if OWNERS[name][0].startswith(place) and name != switch]
    if not on:
        for name in names:
            ok = name not in given or _same(values[name], ABSENT.get(name, DEFAULTS[name]))
            require(ok, f"{name} needs {MEANINGS[place]}", values.get(name))
        if switch and OWNERS[switch][1] and switch in given:
            require(on == 0 and type(on) is int, f"{switch} must be an integer >= 0", repr(on))
        return None
    inside = [inner for inner in CLASSES if inner.startswith(f"{place}.")]
    chosen = {inner.rsplit(".", 1)[1]: _made(inner, values, given) for inner in inside}
    for name in (*names, *([switch] if switch else [])):
        owner, what = OWNERS[name]
        if owner == place and what:
            chosen[what] = values.get(name, DEFAULTS[name])
    return CLASSES[place](**chosen)


def value_of(npu: Any, name: str) -> Any:
    """The value of one flat name; its default where the NPU has no such part."""
    value = npu
    for step in PLACES[name].split("."):
        value = getattr(value, step)
        if value is None:
            break
    if PLACES[name] in CLASSES:
        return value is not None
    return ABSENT.get(name, DEFAULTS[name]) if value is None else value
