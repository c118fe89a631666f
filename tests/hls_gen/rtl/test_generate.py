"""Generated Verilog: the same on every run, clean under lint, and of one piece with its manifest."""

import hashlib
import json
import os
import re
import subprocess
import sys
from functools import lru_cache
from typing import Any

import pytest

from bitloom.hls_gen.check import DesignError, Finding, check
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP, VLNV, Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl import generate as generation
from bitloom.hls_gen.rtl.generate import Verilog, generate
from bitloom.overlay.virtual.sim import lint
from tests.paths import ROOT

MEMORIES = ("layers", "tuple_words", "pool_words", "taps", "olds", "jumps", "pool_taps", "pool_olds")
LEAST = dict.fromkeys((*MEMORIES, "kernel_rows", "threshold_rows", "map_words"), 2)
ODD = {"layers": 3, "taps": 5, "olds": 7, "jumps": 3, "pool_taps": 6, "pool_olds": 5}
ODD |= {"kernel_rows": 9, "threshold_rows": 11, "map_words": 70}
LANES = ("kfp", "kgp", "pfp", "ol", "acc_bits")
SKIPS = {"skip_words": 70, "aheads": 9}
ROUNDINGS = {"half_even": 1, "round_twice": 1}


def binary(*lanes: int, **more: Any) -> Npu:
    """An NPU of these lanes, and bits of sums."""
    return Npu.of(**dict(zip(LANES, lanes)), **more)


def integer(feature_bits: int, weight_bits: int, *lanes: int, **more: Any) -> Npu:
    """The same of the integer engine."""
    kind = {"engine": "integer", "feature_bits": feature_bits, "weight_bits": weight_bits, "shift_bits": 0}
    return Npu.of(**kind, **dict(zip(LANES, lanes)), **more)


def design(name: str, *npus: Npu, bits: int = 32) -> Design:
    return Design(name=name, npus=npus, stream_bits=bits)


FOUR = {"engine": "integer", "feature_bits": 4, "weight_bits": 3, "shift_bits": 0, "kgp": 4, "acc_bits": 20}
FIRST = {"kfp": 2, "ol": 4, "pool": False, "raster": True, "outlets": ("ring", "loop")}
ADDS = {"skip_words": 5, "aheads": 2, "add_factor_bits": 7, "add_bias_bits": 9}
SECOND = {"kfp": 3, "inlets": ("ring",), "outlets": ("host",)}
WIDEST = {"multiplier_bits": 31, "bias_fraction_bits": 16, **ROUNDINGS}
DESIGNS = {
    "one_lane": design("one_lane", binary(1, 1, 1, 1, 4, shift_bits=0, **LEAST)),
    "one_lane_64": design("one_lane_64", binary(1, 3, 70, 2, 32, **ODD), bits=64),
    "wide": design("wide", binary(70, 3, 5, 3, 19, planes=8, **ODD)),
    "wide_64": design("wide_64", binary(64, 70, 32, 7, 11, shift_bits=0), bits=64),
    "words_of_the_stream": design("words", binary(32, 64, 64, 1, 32, shift_bits=1, **ODD)),
    "no_banks": design("no_banks", integer(2, 3, 1, 2, 1, 1, 6, **LEAST), bits=64),
    "integer": design("integer", integer(7, 5, 3, 5, 2, 2, 21, **ODD), bits=64),
    "integer_as_wide_as_can_be": design("integer", integer(9, 8, 3, 5, 2, 2, 32, **WIDEST, **ODD)),
    "addition": design("addition", integer(9, 8, 8, 6, 4, 2, 24, **SKIPS, **ODD)),
    "addition_of_a_chain": design("addition", Npu.of(**FOUR, **FIRST, **ADDS), Npu.of(**FOUR, **SECOND), bits=64),
    "products": design("products", integer(9, 8, 8, 6, 4, 2, 24, **SKIPS, add_factor_bits=7, map_products=1, **ODD)),
    "lookups": design("lookups", integer(7, 8, 3, 5, 2, 2, 24, lookup_rows=768, **ODD)),
    "one_lookup": design("lookups", integer(9, 8, 8, 6, 4, 2, 24, **SKIPS, lookup_rows=256, **ODD), bits=64),
    "nine_planes": design("planes", binary(12, 3, 3, 2, 14, planes=9, **ODD)),
    "nine_shifts": design("shifts", binary(3, 3, 3, 2, 14, shift_bits=4, **ODD)),
    "planes_in_64": design("planes", binary(130, 1, 3, 1, 14, planes=2, **LEAST), bits=64),
}


@lru_cache
def generated(name: str) -> Verilog:
    return generate(DESIGNS[name], checked=False)


@pytest.fixture(params=DESIGNS)
def design_and_verilog(request) -> tuple[Design, Verilog]:
    return DESIGNS[request.param], generated(request.param)


@pytest.mark.sample(2)
def test_passes_the_check(design_and_verilog):
    check(design_and_verilog[1].text, TOP)


@pytest.mark.sample(2)
def test_lint(design_and_verilog):
    """verilator -Wall, one file a module, nothing switched off."""
    assert lint(design_and_verilog[1].text) == []


@pytest.mark.sample(2)
def test_synthesis_differs_in_popcounts_only(design_and_verilog):
    """The modules that are taken over from simulation are those that the whole design for synthesis would have."""
    design, _ = design_and_verilog
    assert generation._blank(design, "synthesis") == generation._top(design, "synthesis").modules()


def test_lint_would_notice():
    """A register that is one bit too narrow."""
    text = generated("one_lane").text
    changed = text.replace("reg [31:0] scratch;", "reg [30:0] scratch;")
    assert changed != text
    assert any("WIDTH" in line for line in lint(changed))


def test_same_text_again():
    """Also after other designs."""
    for name in ("wide", "one_lane"):
        generation._blank.cache_clear()
        again = generate(DESIGNS[name], checked=False)
        assert again.modules == generated(name).modules
        assert again.manifest == generated(name).manifest


def test_same_text_in_another_process():
    """Whatever the order of sets and hashes there."""
    names = ["one_lane_64", "wide"]
    program = """
import json, sys
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.rtl.generate import generate
json.dump([generate(Design.from_dict(d), checked=False).text for d in json.load(sys.stdin)], sys.stdout)
"""
    designs = json.dumps([DESIGNS[n].to_dict() for n in names])
    surroundings = {"cwd": ROOT, "env": {**os.environ, "PYTHONHASHSEED": "4711"}}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=designs, capture_output=True, text=True, check=True, **surroundings)
    assert json.loads(done.stdout) == [generated(n).text for n in names]


@pytest.mark.sample(4)
def test_digest(design_and_verilog):
    """SHA-256 of the text in which the digest registers are 0; they hold its first 16 bytes."""
    verilog = design_and_verilog[1]
    digest = verilog.manifest["digest"]
    words = [int(digest[8 * k : 8 * k + 8], 16) for k in range(4)]
    blank = verilog.text
    for word in words:
        assert len(re.findall(rf"\b32'h{word:x}\b", blank)) == 1
        blank = re.sub(rf"\b32'h{word:x}\b", "32'h0", blank)
    assert hashlib.sha256(blank.encode()).hexdigest() == digest


def test_manifest(design_and_verilog):
    """It loads in the driver, says the design's parameters, and survives JSON."""
    design, verilog = design_and_verilog
    manifest = Manifest.from_dict(json.loads(json.dumps(verilog.manifest)))
    assert (manifest.name, manifest.stream_bits, manifest.to_dict()["top"], manifest.vlnv) == (
        design.name,
        design.stream_bits,
        TOP,
        VLNV,
    )
    assert manifest.design == design
    for memory, described in zip(memory_map(design.npus[0]), verilog.manifest["npus"][0]["memories"], strict=True):
        wanted = (memory.name, memory.id, memory.depth, memory.width)
        assert tuple(described[what] for what in ("name", "id", "depth", "width")) == wanted
        low = 0
        for (name, width), field in zip(memory.widths.items(), described["fields"], strict=True):
            assert field == [name, low, width]
            low += width


def test_modules(design_and_verilog):
    """Each module stands once, under its own name; the top comes first; nothing is lost from the text."""
    _, verilog = design_and_verilog
    assert next(iter(verilog.modules)) == TOP
    for name, text in verilog.modules.items():
        assert text.startswith(f"// {name}\n")
        assert re.findall(r"^module (\w+)", text, flags=re.M) == [name]
        assert text.endswith("endmodule\n")
    used = set(re.findall(r"^  (\w+)(?: #\([^;]*?\))?\s+\w+ \($", verilog.text, flags=re.M))
    assert used == set(verilog.modules) - {TOP}


def test_design_changes_the_digest():
    assert len({generated(name).manifest["digest"] for name in DESIGNS}) == len(DESIGNS)


def test_generate_runs_the_checker(monkeypatch):
    """On the whole text; what it finds comes out, and nothing is made."""
    seen = []

    def refuse(text, top):
        seen.append((text, top))
        raise DesignError([Finding("top", "q", "must be good, got bad")])

    design = DESIGNS[next(iter(DESIGNS))]
    text = generate(design, checked=False).text
    monkeypatch.setattr(generation, "check_once", refuse)
    with pytest.raises(DesignError, match=r"^top\.q: must be good, got bad\Z"):
        generate(design)
    assert seen == [(text, TOP)]
