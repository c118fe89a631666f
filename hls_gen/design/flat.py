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
from typing import Any, NamedTuple

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

ENGINES = ("binary", "integer")
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


class Switch(NamedTuple):
    """The flat name whose value says whether an NPU has a part that it may lack."""

    name: str
    """The flat name."""
    part: str
    """Name of the part in messages."""
    rare: bool = False
    """Whether values of the part are written to files only where they aren't at their defaults."""
    default: bool | None = None
    """Value of the name where nothing is said; None of a number, which is a field of the part and 0 without the
    part."""
    means: str = ""
    """Meaning of the value, in a sentence, where no field says it."""


SWITCHES = {
    "former": Switch(
        "window_former",
        "a window former",
        rare=True,
        default=False,
        means="Layers of few channels get the taps of a window side by side.",
    ),
    "former.sizes": Switch("former_column", "a window former with sizes", rare=True),
    "pool_unit": Switch("pool", "a pool unit", default=True, means="Whether there is a pool unit."),
    "pool_unit.weights": Switch(
        "depthwise",
        "a pool unit with weights (depthwise)",
        rare=True,
        default=False,
        means="Weights in the pool unit of an integer NPU, for depthwise convolutions.",
    ),
    "stores.skip": Switch("skip_words", "a skip store", rare=True),
    "ports.binariser": Switch("binariser_bits", "a binariser"),
}
"""Switch of each part that an NPU may lack."""


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
    **{switch.name: (place, "") for place, switch in SWITCHES.items()},
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
CHOOSE_ALONE = KIND_CHOOSERS.keys() - {switch.name for switch in SWITCHES.values()}
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
MEANS = {
    **{name: item.metadata["means"] for name, (_, item) in _DECLARED.items() if item.metadata.get("means")},
    **{switch.name: switch.means for switch in SWITCHES.values() if switch.means},
    "engine": "binary: XNOR and popcount. integer: multiply and requantise.",
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
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(PLACES, 0),
    **{name: item.default for name, (_, item) in _DECLARED.items() if item.default is not MISSING},
    **{switch.name: switch.default for switch in SWITCHES.values() if switch.default is not None},
    "engine": "binary",
    "feature_bits": 1,
    "weight_bits": 1,
}
"""The value of each flat name where nothing is said; 0 of a number that is a switch."""
ABSENT = DEFAULTS | {"pfp": 1, "shift_bits": 0}
"""The value of each name in an NPU without a part that has it."""
WITHIN = {name: (*part.partition(".")[::2], what) for name, (part, what) in OWNERS.items()}
"""Part of each name, the part inside that one, if any, and the field."""
OFF = {switch.name: 0 if switch.default is None else False for switch in SWITCHES.values()}
"""Values of the switches that say that there is no such part."""
RARE = frozenset(
    {name for name, (_, item) in _DECLARED.items() if item.metadata.get("rare")}
    | {name for name, (place, _) in OWNERS.items() if place in SWITCHES and SWITCHES[place].rare}
)
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
    on = switch is None or values.get(switch.name, DEFAULTS[switch.name])
    if switch and switch.default is None:
        replace(NUMBERS[switch.name], or_zero=True).check(switch.name, on)
    elif switch:
        require(isinstance(on, bool), f"{switch.name} must be True or False", shown(on))
    kind = _kind_of(place, values) if on else None
    declared = [item.name for item in fields(kind)] if kind else []
    for name, what in _FIELDS[place].items():
        chooses = (switch and switch.name == name) or place in KIND_CHOOSERS.get(name, ())
        if what not in declared and name in given and not chooses:
            rule = f"needs {switch.part}" if switch and not kind else _without_field(name, values)
            require(_same(values[name], ABSENT[name]), f"{name} {rule}", values[name])
    if kind is None:
        return None
    inside = [what for what in declared if f"{place}.{what}" in KINDS]
    chosen = {what: part_of(f"{place}.{what}", values, given) for what in inside}
    for name, what in _FIELDS[place].items():
        if what in declared and what not in inside:
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
    if not kinds:
        raise ValueError(f"npu: {SWITCHES[place].name} needs engine {KINDS[place][0].engine}, got {engine}")
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
    """Names whose values mean something in this NPU.

    These are the names of parts that the NPU has. Where a field says of which NPUs its value means something (``where``
    of `parts.value`), or only some kinds of the part have the field, the NPU must also be such a one. A part whose
    switch is a size, such as a window former's sizes, comes as it is sized: names of it with a ``where`` mean something
    before the NPU has the part.
    """
    always, where = _meant_without(npu.lacking)
    return always.union(name for name in where if _MEANS[name](npu))


@lru_cache
def _meant_without(lacking: frozenset[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names whose values mean something in every NPU that lacks these places, and those of which an NPU says it."""
    chosen = {place for place in lacking if SWITCHES[place].name not in _SIZED}
    always = (name for name, (place, _) in OWNERS.items() if name not in _MEANS and place not in lacking)
    return frozenset(always), tuple(name for name in _MEANS if OWNERS[name][0] not in chosen)


def stray(npu: Any) -> list[str]:
    """Names whose values are not the defaults in this NPU, where they mean nothing. A size that isn't 0 by default is
    none, such as the words of a map store that isn't there: it is left as it is."""
    names = (name for name in WHERE if not (name in _SIZED and DEFAULTS[name]))
    return [name for name in names if value_of(npu, name) != DEFAULTS[name] and not _MEANS[name](npu)]


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
