"""The commands by which a report's build and figures are made again."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from shlex import join

from ..designs import REFERENCES, Reference, chosen, folding
from ..fit import geometry
from .compiled import Compiled, makes

FOLDING = ("kfp", "kgp", "pfp", "ol", "planes")
"""Parameters that ``bitloom build`` takes."""


def commands(made: Compiled, frames: int, given: str | None = None) -> list[str]:
    """Commands for a terminal; without ``bitloom build`` where none makes this design.

    frames : of the run.  given : the network as it was named on the command line, None: not at all.
    """
    folder, named = str(made.build.folder), [given] if given else []
    build = next((options for options, tried in _tried(made) if _makes(tried, made)), None)
    network = given or made.program.name
    return [
        *([join(["bitloom", "build", network, *build, "--out", folder])] if build is not None else []),
        *(join(["bitloom", command, folder, *named, "--frames", str(frames)]) for command in ("simulate", "report")),
        join(["bitloom", "area", folder]),
    ]


def _tried(made: Compiled) -> Iterator[tuple[list[str], Reference]]:
    """Options of ``bitloom build`` that could make the build, and the design that it would take with them."""
    model, first, weights = made.model, made.build.design.npus[0], _streams_weights(made)
    bare = folding(model)
    own = {key: getattr(first, key) for key in FOLDING if getattr(first, key) != getattr(bare, key)}
    foldings: list[tuple[str | None, dict[str, int]]] = []
    if not weights:
        foldings += [(name, {}) for name, r in REFERENCES.items() if r.network == model.network.name]
    if own or weights or model.network.name not in REFERENCES:
        foldings.append((None, own))
    for (name, given), bits, order in product(
        foldings, (None, str(made.build.design.stream_bits)), (None, *made.orders)
    ):
        options = [
            *(["--design", name] if name not in (None, model.network.name) else []),
            *(text for key, value in given.items() for text in (f"--{key}", str(value))),
            *(["--stream-bits", bits] if bits else []),
            *(["--order", order] if order else []),
            *(["--stream-weights"] if weights else []),
        ]
        yield options, chosen(model, name, given, bits, order, one_npu=weights)


def _makes(tried: Reference, made: Compiled) -> bool:
    """Whether ``bitloom build`` makes this design and this program of that reference."""
    design = made.build.design
    if len(tried.npus) != len(design.npus) or tried.stream_bits != design.stream_bits:
        return False
    pairs = zip(tried.npus, design.npus)  # the quick part: memories needn't be fitted for it
    if any(geometry(replace(npu, collect=has.collect)) != geometry(has) for npu, has in pairs):
        return False
    name, weights = made.model.network.name, _streams_weights(made)
    if tried.design(name, [made.model], stream_weights=weights) != replace(design, name=name):
        return False
    return makes(made.program, made.model, made.manifest, tried.order, tried.work, tried.mapping)


def _streams_weights(made: Compiled) -> bool:
    return any(npu.stream_weights for npu in made.build.design.npus)
