"""Flat names: what a person calls a value of an NPU, wherever its parts lie.

Command lines, files of foldings and manifests name values of an NPU by one flat list of names (``pfp``, ``pool_words``,
``skip_words``). Here stand, once, these names in the order of files. Where the value of a name lies follows from the
parts, whose fields declare their names (parts.py).

Example: ``pool_words`` is ``npu.pool_unit.words``, and ``pool`` says whether there is a pool unit at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from bitloom.golden.names import shown

from .array import BinaryArray, IntegerArray
from .former import Former, FormerSizes
from .loader import Loader
from .parts import Choices, NpuPart, Number, name_of, rule_of
from .pool_unit import PoolUnit, PoolWeights
from .ports import Binariser, Ports
from .reducer import ACCUMULATE, CollectedPopcount, Or, OrWords, SerialPopcount, kind_of
from .results import IntegerResults, SignResults, ThresholdResults, results_kind
from .rules import require
from .sequencer import Sequencer
from .stores import MapSkipStore, StepSkipStore, Stores

ENGINES: dict[str, type[BinaryArray] | type[IntegerArray]] = {"binary": BinaryArray, "integer": IntegerArray}
"""The array of each engine."""
KINDS: dict[str, tuple[type[NpuPart], ...]] = {
    "array": (IntegerArray, BinaryArray),
    "array.reducer": (CollectedPopcount, OrWords, Or, SerialPopcount),
    "former": (Former,),
    "former.sizes": (FormerSizes,),
    "sequencer": (Sequencer,),
    "results": (IntegerResults, SignResults, ThresholdResults),
    "pool_unit": (PoolUnit,),
    "pool_unit.weights": (PoolWeights,),
    "stores": (Stores,),
    "stores.skip": (MapSkipStore, StepSkipStore),
    "ports": (Ports,),
    "ports.binariser": (Binariser,),
    "loader": (Loader,),
}
"""The kinds of part that a place may have. Of kinds that have values of one name, the last one says the default."""
ORDER = (
    "engine",
    "feature_bits",
    "weight_bits",
    "kfp",
    "kgp",
    "pfp",
    "ol",
    "accumulate",
    "word_lanes",
    "collect",
    "accumulators",
    "planes",
    "shift_bits",
    "binariser_bits",
    "buffer_words",
    "kernel_ram",
    "inlets",
    "outlets",
    "pool",
    "raster",
    "stream_weights",
    "kernels_per_multiplier",
    "one_memory",
    "kernel_binariser",
    "depthwise",
    "window_former",
    "lut_products",
    "acc_bits",
    "multiplier_bits",
    "bias_fraction_bits",
    "half_even",
    "round_twice",
    "lanes_per_weight",
    "lane_step",
    "binariser_rows",
    "layers",
    "windows",
    "window_taps",
    "groups",
    "levels",
    "input_words",
    "tuple_words",
    "pool_words",
    "pool_tuple_words",
    "taps",
    "olds",
    "jumps",
    "aheads",
    "tuple_parts",
    "pool_taps",
    "pool_olds",
    "kernel_rows",
    "threshold_rows",
    "lookup_rows",
    "map_words",
    "pool_jumps",
    "pool_kernel_rows",
    "pool_scale_rows",
    "skip_words",
    "joined_words",
    "skip_bits",
    "skips_onward",
    "add_factor_bits",
    "add_bias_bits",
    "former_channels",
    "former_column",
    "former_columns",
    "former_line",
    "former_granule",
    "former_ahead",
)
"""Names in the order of files, what is chosen first. Names that are not here follow, in the order of the parts."""
KIND_CHOOSERS = {
    "engine": ("array", "results", "stores.skip"),
    "accumulate": ("array.reducer",),
    "collect": ("array.reducer",),
    "skip_words": ("results",),
}
"""Flat names whose values choose the kinds of parts, and the places of these parts (`_kind_of`)."""
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
"""Names of these parts in messages."""
RARE_PARTS = ("former.sizes", "pool_unit.weights", "stores.skip")
"""Parts whose values are written to files only where they aren't at their defaults."""


_DECLARED = {
    name_of(item): (place, item)
    for place, kinds in KINDS.items()
    for kind in kinds
    for item in fields(kind)
    if f"{place}.{item.name}" not in KINDS
}
"""The part in which the value of a name lies, and the field that declares it."""


def _kinds_with(place: str, what: str) -> list[type[NpuPart]]:
    """The kinds of the part of a place that have a field."""
    return [kind for kind in KINDS[place] if any(item.name == what for item in fields(kind))]


_OWNERS = {
    "engine": ("array", "engine"),  # no field: the kind of array says it
    **{switch: (place, "") for place, switch in SWITCHES.items()},
    **{name: (place, item.name) for name, (place, item) in _DECLARED.items()},
}
NUMBERS = {name: rule for name, (_, item) in _DECLARED.items() if isinstance(rule := rule_of(item), Number)}
"""Rule of each name that is a number."""
_SIZED = {name for name, rule in NUMBERS.items() if rule.sized}
assert {*ORDER} <= _OWNERS.keys(), f"no part has these names of ORDER: {set(ORDER) - set(_OWNERS)}"
_LISTED = [*ORDER, *(name for name in _OWNERS if name not in ORDER)]
CHOSEN = tuple(name for name in _LISTED if name not in _SIZED)
"""The folding: what a person or the search chooses, in the order of files."""
CAPACITIES = tuple(name for name in _LISTED if name in _SIZED)
"""Capacities: how large memories are and how far counters reach, as sizing finds them for networks; in the order of
files."""
OWNERS = {name: _OWNERS[name] for name in (*CHOSEN, *CAPACITIES)}
"""Part and field of each flat name: ("pool_unit", "words") of pool_words. Of a name that says whether there is a part,
its place and nothing."""
CHOOSE_ELSEWHERE = tuple(name for name, places in KIND_CHOOSERS.items() if {OWNERS[name][0]} != {*places})
"""Names of `KIND_CHOOSERS` that choose the kind of another part than the one in which they lie."""
CHOOSE_ALONE = KIND_CHOOSERS.keys() - SWITCHES.values()
"""Names of `KIND_CHOOSERS` that don't say besides whether there is a part."""
PLACES = {name: f"{place}.{what}" if what else place for name, (place, what) in OWNERS.items()}
"""Where the value of each flat name lies: "pool_unit.words" of pool_words."""
_STEPS = {name: place.split(".") for name, place in PLACES.items()}
"""That place, attribute by attribute."""
LEAST = {name: rule.least for name, rule in NUMBERS.items()}
"""The least value of each; a 0 that leaves something out doesn't count."""
CHOICES = {name: rule for name, (_, item) in _DECLARED.items() if isinstance(rule := rule_of(item), Choices)} | {
    "accumulate": Choices(words=ACCUMULATE)
}
"""Rule of each name that is one of a few words, or some of them."""
MEANS = {name: item.metadata["means"] for name, (_, item) in _DECLARED.items() if item.metadata.get("means")} | {
    "engine": "binary: XNOR and popcount. integer: multiply and requantise.",
    "pool": "Whether there is a pool unit.",
    "depthwise": "Weights in the pool unit of an integer NPU, for depthwise convolutions.",
    "window_former": "Layers of few channels get the taps of a window side by side.",
}
"""Meaning of each value of the folding, in a sentence."""
OPTIONS = {name: item.metadata["option"] for name, (_, item) in _DECLARED.items() if item.metadata.get("option")}
"""Names on the command line of values whose names in files are others."""
WHERE = {name: where for name, (_, item) in _DECLARED.items() if (where := item.metadata.get("where"))}
"""Property of an NPU that is true where the value means something, of names whose fields say that (`parts.value`)."""


def _is_field(name: str) -> Callable[[Any], bool]:
    """Function that tells of an NPU whether its part has the field of a name."""
    place, _, what = PLACES[name].rpartition(".")
    part = attrgetter(place)
    return lambda npu: what in getattr(part(npu), "__dict__", ())


_MEANS: dict[str, Callable[[Any], Any]] = {
    **{name: attrgetter(where) for name, where in WHERE.items()},
    **{
        name: _is_field(name)
        for name, (place, item) in _DECLARED.items()
        if _kinds_with(place, item.name) != [*KINDS[place]]
    },
}
"""Function that tells of an NPU whether the value of a name means something, of names for which the NPU's places don't
say it."""


def _default(name: str) -> Any:
    """The value of a name that is not given."""
    given = {"engine": "binary", "pool": True, "depthwise": False, "window_former": False}
    if name in given:
        return given[name]
    if name in ("feature_bits", "weight_bits"):
        return 1
    default = _DECLARED[name][1].default if name in _DECLARED else MISSING
    return 0 if default is MISSING else default


DEFAULTS = {name: _default(name) for name in PLACES}
"""The value of each flat name where nothing is said; 0 of a number that is a switch."""
_LEFT = frozenset(name for name in _SIZED if DEFAULTS[name])
"""Sizes that an NPU keeps where they mean nothing."""
ABSENT = DEFAULTS | {"pfp": 1, "shift_bits": 0}
"""The value of each name in an NPU without a part that has it."""
WITHIN = {name: (*part.partition(".")[::2], what) for name, (part, what) in OWNERS.items()}
"""Part of each name, the part inside that one, if any, and the field."""
OFF = {name: 0 if OWNERS[name][1] else False for name in SWITCHES.values()}
"""Values of the switches that say that there is no such part."""


def _is_rare(name: str) -> bool:
    """Whether a name is written to files only where its value isn't the default."""
    rare = name in _DECLARED and bool(_DECLARED[name][1].metadata.get("rare"))
    return rare or OWNERS[name][0] in RARE_PARTS or name == "window_former"


RARE = frozenset(name for name in PLACES if _is_rare(name))
"""Names that are written to files only where their value isn't the default: their features are rare."""
NAMES = {part: tuple(name for name in PLACES if f"{OWNERS[name][0]}.".startswith(f"{part}.")) for part in KINDS}
"""The flat names of each part, those of the parts inside it too."""
_FIELDS = {
    place: {name: PLACES[name].removeprefix(place)[1:].partition(".")[0] for name in names}
    for place, names in NAMES.items()
}
"""The field of a part in which the value of each of these names lies: "reducer" of ``planes`` in "array". Of a name
that says whether there is the part itself, nothing."""


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same; True is not 1."""
    return type(value) is type(other) and bool(value == other)


def engine_of(name: str) -> str:
    """The engine whose NPUs alone may have the part with the value of a name; nothing where both may."""
    place, what = OWNERS[name]
    engines = {kind.engine for kind in _kinds_with(place, what) or KINDS[place]}
    return engines.pop() if len(engines) == 1 else ""


def part_of(place: str, values: Mapping[str, Any], given: frozenset[str]) -> Any:
    """Make a part of an NPU.

    Parameters
    ----------
    place
        The part's name, such as "array", or that of a part inside it, such as "array.reducer".
    values
        Values by flat name. Names that are missing have their defaults; names of other parts are left alone.
    given
        Names that somebody asked for: their values must have a place. Others may lose it, as ``pfp`` does where the
        pool unit goes.

    Returns
    -------
    NpuPart or None
        The part with the parts inside it; None where it is switched off.

    Raises
    ------
    ValueError
        A value is out of its range, or given where there is no place for it. One line: name, rule and value.
    """
    switch = SWITCHES.get(place)
    on = switch is None or values.get(switch, DEFAULTS[switch])
    if switch and OWNERS[switch][1]:
        replace(NUMBERS[switch], or_zero=True).check(switch, on)
    elif switch:
        require(isinstance(on, bool), f"{switch} must be True or False", shown(on))
    kind = _kind_of(place, values) if on else None
    own = [item.name for item in fields(kind)] if kind else []
    for name, what in _FIELDS[place].items():
        if what not in own and name in given and name != switch and place not in KIND_CHOOSERS.get(name, ()):
            rule = _without_field(name, values) if kind else f"needs {MEANINGS[place]}"
            require(_same(values[name], ABSENT[name]), f"{name} {rule}", values[name])
    if kind is None:
        return None
    inside = [what for what in own if f"{place}.{what}" in KINDS]
    chosen = {what: part_of(f"{place}.{what}", values, given) for what in inside}
    for name, what in _FIELDS[place].items():
        if what in own and what not in inside:
            chosen[what] = values.get(name, DEFAULTS[name])
    return kind(**chosen)


def _kind_of(place: str, values: Mapping[str, Any]) -> type[NpuPart]:
    """The kind of the part of a place."""
    engine = values.get("engine", DEFAULTS["engine"])
    require(isinstance(engine, str) and engine in ENGINES, "engine must be binary or integer", shown(engine))
    if place == "results":
        return results_kind(engine, adds=bool(values.get("skip_words")))
    if place == "array.reducer":
        choice, collect = (values.get(name, DEFAULTS[name]) for name in ("accumulate", "collect"))
        CHOICES["accumulate"].check("accumulate", choice)
        NUMBERS["collect"].check("collect", collect)
        return kind_of(choice, collect)
    kinds = [kind for kind in KINDS[place] if kind.engine in ("", engine)]
    require(bool(kinds), f"{SWITCHES.get(place)} needs engine {KINDS[place][0].engine}", engine)
    return kinds[0]


def _without_field(name: str, values: Mapping[str, Any]) -> str:
    """The rule for the value of a name that the kind of its part lacks, in words."""
    engine = values.get("engine", DEFAULTS["engine"])
    if engine_of(name) not in ("", engine):
        return f"must be {ABSENT[name]} for engine {engine}"
    if OWNERS[name][0] == "results":
        return "needs engine integer or a skip store"
    if _kind_of("array.reducer", values) is CollectedPopcount:
        return f"must be {ABSENT[name]} for collect = {values['collect']}"
    return f"must be {ABSENT[name]} for accumulate {values['accumulate']}"


def meant(npu: Any) -> frozenset[str]:
    """Names whose values mean something in this NPU: those of parts that it has. Of a part that comes with its sizes,
    such as a skip store, also those of which the NPU says that they mean something, before it has the part."""
    always, where = _meant_without(npu.lacking)
    return always.union(name for name in where if _MEANS[name](npu))


@lru_cache
def _meant_without(lacking: frozenset[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names whose values mean something in every NPU that lacks these places, and those of which an NPU says it."""
    chosen = {place for place in lacking if SWITCHES[place] not in _SIZED}
    always = (name for name, (place, _) in OWNERS.items() if name not in _MEANS and place not in lacking)
    return frozenset(always), tuple(name for name in _MEANS if OWNERS[name][0] not in chosen)


def stray(npu: Any) -> list[str]:
    """Names whose values are not the defaults in this NPU, where they mean nothing. A size that isn't 0 by default is
    none, such as the words of a map store that isn't there: it is left as it is."""
    return [
        name for name in WHERE if name not in _LEFT and value_of(npu, name) != DEFAULTS[name] and not _MEANS[name](npu)
    ]


def value_of(npu: Any, name: str) -> Any:
    """The value of one flat name; what `ABSENT` says where no part of the NPU has it."""
    value = npu
    for step in _STEPS[name]:
        value = getattr(value, step, None)
        if value is None:
            break
    if not OWNERS[name][1]:
        return value is not None
    return ABSENT[name] if value is None else value
