"""Types of options, their limits and defaults."""

from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.cli.options import POSITIVE


@pytest.mark.parametrize("text", ["0.25", "1", "1e-9", "1000"])
def test_a_number_above_0(text: str) -> None:
    assert POSITIVE.convert(text, None, None) == float(text)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan"])
def test_no_number_above_0(text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"^must be a number above 0, got {text}$"):
        POSITIVE.convert(text, None, None)


OPTIONS = """\
--batch 1<=x<=256: bench training
--batch 1<=x<=4096: learn
--batch x>=1: simulate
--batch x>=1 default (1, 32) multiple: bench cpu, bench gpu
--batch x>=1 default (1, 64) multiple: bench golden
--batch x>=1 default 32: train
--board required: go
--cases x>=1: fuzz
--check 0<=x<=4096 default 8: import
--clock-mhz default 100.0: build, evaluate, explore, go, machine, report
--code-bits default 3: machine
--column-words default 32: machine
--converter default shifting: machine
--dataflow multiple: area, build, compile, timing
--decay-places 0<=x<=31: learn
--divider default none: machine
--dma default amd: build
--engine default auto: import
--epochs x>=1: learn, train
--first-seed x>=0 default 0: learn
--for required: compile
--fraction default 12: machine
--frames 1<=x<=360 default 360: demo
--frames x>=1: simulate
--frames x>=2: report
--frames x>=2 default 16: go
--frames x>=2 default 2: bench mlperf-tiny
--frames x>=2 default 8: bench designs
--grade default artix7-1: timing
--halvings x>=0 default 1: explore
--hardware x>=2: evaluate
--hidden 1<=x<=4096 default 32: bench training
--host default 127.0.0.1: serve
--idle-seconds x>0 default 60.0: serve
--instructions default 128: machine
--jobs x>=1: fuzz
--jobs x>=1 default 1: explore
--limit x>=1: evaluate
--limit x>=2: go
--lut-products multiple: area, build, timing
--map-order default both: explore
--margin 0<x<=16.0: train
--margin x>=0: explore
--minutes 0<x<=1000000.0: fuzz
--mu-places 0<=x<=31: learn
--name default training: machine
--neuron-words default 1024: machine
--npus 2<=x<=32: bench mlperf-tiny
--paths 0<=x<=20 default 5: timing
--paths 0<=x<=40 default 5: area
--points x>=1: go
--points x>=1 default 9: explore
--port 0<=x<=65535 default 7967: serve
--products default multiplier: machine
--qonnx required: export
--rate 0<x<=1.0: train
--rate-places 0<=x<=31: learn
--rate-times default 1.0: learn
--root default none: machine
--rounds x>=1 default 15: bench cpu, bench golden, bench gpu
--routed default True: timing
--seed x>=0 default 0: demo, fuzz, simulate, train
--seed x>=0 default 1: timing
--seeds 1<=x<=100 default 1: train
--seeds 1<=x<=1000 default 1: learn
--setting default words: bench training
--setting multiple: learn
--shape multiple: bench cpu, bench gpu
--slaves default ('1', '2', '4', '8', '16') multiple: bench training
--slaves default 8: learn, machine
--stall 0<=x<=0.95 default 0.0: demo, simulate
--stream-bits default 64: explore
--streamed-weights default auto: explore
--tables default 3: machine
--threads x>=1: bench cpu
--weight-words default 1024: machine
--windows 2 values: learn
--word-bits default 18: machine
build required: deploy
campaign required: fuzz
data required: learn
folder required: report, serve, simulate
given required -1 values: compile
names -1 values: bench designs, bench golden, bench mlperf-tiny
net required: evaluate, go
network required: export
networks required -1 values: build, explore
source required: area, import, timing
"""
"""Options with limits or with a default, and arguments that must be given or may be several, with their commands."""


def parameters(command: click.Command, name: str) -> Iterator[tuple[str, click.Parameter]]:
    """The parameters of a command and of those in it, with the command's name."""
    for inner, other in getattr(command, "commands", {}).items():
        yield from parameters(other, f"{name} {inner}".strip())
    yield from ((name, parameter) for parameter in command.params)


def form(parameter: click.Parameter) -> str:
    """An option's limits and default; how an argument must be given."""
    default, given = parameter.default, [parameter.opts[-1]]
    if isinstance(parameter.type, click.IntRange | click.FloatRange):
        given.append(parameter.type._describe_range())
    if isinstance(default, int | float | str | tuple) and default is not False and default != "":
        given.append(f"default {default}")
    given += ["required"] * parameter.required + [f"{parameter.nargs} values"] * (parameter.nargs != 1)
    return " ".join([*given, *["multiple"] * parameter.multiple])


def test_limits_and_defaults() -> None:
    """What scripts of users rely on; a change on purpose changes the table."""
    found = defaultdict[str, list[str]](list)
    for name, parameter in parameters(bitloom, ""):
        if " " in (told := form(parameter)):
            found[told].append(name)
    assert [f"{told}: {', '.join(sorted(names))}" for told, names in sorted(found.items())] == OPTIONS.splitlines()
