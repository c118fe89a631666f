"""Generated Verilog: the same on every run, clean under lint, and of one piece with its manifest."""

import hashlib
import json
import os
import re
import subprocess
import sys
from functools import lru_cache

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

LEAST = {"layers": 2, "tuple_words": 2, "pool_words": 2, "taps": 2, "olds": 2, "jumps": 2, "pool_taps": 2,
         "pool_olds": 2,
         "kernel_rows": 2, "threshold_rows": 2, "map_words": 2}  # fmt: skip
ODD = {"layers": 3, "taps": 5, "olds": 7, "jumps": 3, "pool_taps": 6, "pool_olds": 5, "kernel_rows": 9,
       "threshold_rows": 11,
       "map_words": 70}  # fmt: skip
DESIGNS = {
    "one_lane": Design(name="one_lane", npus=(Npu.of(kfp=1, kgp=1, pfp=1, ol=1, acc_bits=4, shift_bits=0, **LEAST),)),
    "one_lane_64": Design(name="one_lane_64", stream_bits=64, npus=(Npu.of(kfp=1, kgp=3, pfp=70, ol=2, acc_bits=32,
    **ODD),)),
    "wide": Design(name="wide", npus=(Npu.of(kfp=70, kgp=3, pfp=5, ol=3, acc_bits=19, planes=8, **ODD),)),
    "wide_64": Design(name="wide_64", stream_bits=64, npus=(Npu.of(kfp=64, kgp=70, pfp=32, ol=7, acc_bits=11,
    shift_bits=0),)),
    "words_of_the_stream": Design(name="words", npus=(Npu.of(kfp=32, kgp=64, pfp=64, ol=1, acc_bits=32, shift_bits=1,
    **ODD),)),
    "no_banks": Design(name="no_banks", stream_bits=64, npus=(Npu.of(
        engine="integer", feature_bits=2, weight_bits=3, shift_bits=0, kfp=1, kgp=2, pfp=1, ol=1, acc_bits=6,
        **LEAST),)),
    "integer": Design(name="integer", stream_bits=64, npus=(Npu.of(
        engine="integer", feature_bits=7, weight_bits=5, shift_bits=0, kfp=3, kgp=5, pfp=2, ol=2, acc_bits=21,
        **ODD),)),
    "integer_as_wide_as_can_be": Design(name="integer", npus=(Npu.of(
        engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=3, kgp=5, pfp=2, ol=2, acc_bits=32,
        multiplier_bits=31, bias_fraction_bits=16, half_even=1, round_twice=1, **ODD),)),
    "addition": Design(name="addition", npus=(Npu.of(
        engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=8, kgp=6, pfp=4, ol=2, acc_bits=24,
        skip_words=70, aheads=9, **ODD),)),
    "addition_of_a_chain": Design(name="addition", stream_bits=64, npus=(Npu.of(
        engine="integer", feature_bits=4, weight_bits=3, shift_bits=0, kfp=2, kgp=4, ol=4, acc_bits=20, pool=False,
        skip_words=5, aheads=2, raster=True, add_factor_bits=7, add_bias_bits=9, outlets=("ring", "loop")), Npu.of(
        engine="integer", feature_bits=4, weight_bits=3, shift_bits=0, kfp=3, kgp=4, acc_bits=20, inlets=("ring",),
        outlets=("host",)))),
    "products": Design(name="products", npus=(Npu.of(
        engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=8, kgp=6, pfp=4, ol=2, acc_bits=24,
        skip_words=70, aheads=9, add_factor_bits=7, map_products=1, **ODD),)),
    "lookups": Design(name="lookups", npus=(Npu.of(
        engine="integer", feature_bits=7, weight_bits=8, shift_bits=0, kfp=3, kgp=5, pfp=2, ol=2, acc_bits=24,
        lookup_rows=768, **ODD),)),
    "one_lookup": Design(name="lookups", stream_bits=64, npus=(Npu.of(
        engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=8, kgp=6, pfp=4, ol=2, acc_bits=24,
        skip_words=70, aheads=9, lookup_rows=256, **ODD),)),
    "nine_planes": Design(name="planes", npus=(Npu.of(kfp=12, kgp=3, pfp=3, ol=2, planes=9, acc_bits=14, **ODD),)),
    "nine_shifts": Design(name="shifts", npus=(Npu.of(kfp=3, kgp=3, pfp=3, ol=2, shift_bits=4, acc_bits=14, **ODD),)),
    "planes_in_64": Design(name="planes", stream_bits=64, npus=(Npu.of(kfp=130, kgp=1, pfp=3, ol=1, planes=2,
    acc_bits=14, **LEAST),)),
}  # fmt: skip


@lru_cache
def generated(name: str) -> Verilog:
    return generate(DESIGNS[name], checked=False)


@pytest.fixture(params=DESIGNS)
def made(request) -> tuple[Design, Verilog]:
    return DESIGNS[request.param], generated(request.param)


@pytest.mark.sample(2)
def test_passes_the_check(made):
    check(made[1].text, TOP)


@pytest.mark.sample(2)
def test_lint(made):
    """verilator -Wall, one file a module, nothing switched off."""
    assert lint(made[1].text) == []


@pytest.mark.sample(2)
def test_synthesis_differs_in_popcounts_only(made):
    """The modules that are taken over from simulation are those that the whole design for synthesis would have."""
    design, _ = made
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
    program = ("import json, sys; from bitloom.hls_gen.design.design import Design; "
               "from bitloom.hls_gen.rtl.generate import generate; "
               "texts = [generate(Design.from_dict(d), checked=False).text for d in json.load(sys.stdin)]; "
               "json.dump(texts, sys.stdout)")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps([DESIGNS[n].to_dict() for n in names]), capture_output=True,
        text=True, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "4711"},
    )  # fmt: skip
    assert json.loads(done.stdout) == [generated(n).text for n in names]


@pytest.mark.sample(4)
def test_digest(made):
    """SHA-256 of the text in which the digest registers are 0; they hold its first 16 bytes."""
    verilog = made[1]
    digest = verilog.manifest["digest"]
    words = [int(digest[8 * k : 8 * k + 8], 16) for k in range(4)]
    blank = verilog.text
    for word in words:
        assert len(re.findall(rf"\b32'h{word:x}\b", blank)) == 1
        blank = re.sub(rf"\b32'h{word:x}\b", "32'h0", blank)
    assert hashlib.sha256(blank.encode()).hexdigest() == digest


def test_manifest(made):
    """It loads in the driver, says the design's parameters, and survives JSON."""
    design, verilog = made
    manifest = Manifest.from_dict(json.loads(json.dumps(verilog.manifest)))
    assert (manifest.name, manifest.stream_bits, manifest.to_dict()["top"], manifest.vlnv) == (
        design.name,
        design.stream_bits,
        TOP,
        VLNV,
    )
    assert manifest.design == design
    for memory, described in zip(memory_map(design.npus[0]), verilog.manifest["npus"][0]["memories"], strict=True):
        assert (described["name"], described["id"], described["depth"], described["width"]) == (
            memory.name, memory.id, memory.depth, memory.width)  # fmt: skip
        low = 0
        for (name, width), field in zip(memory.widths.items(), described["fields"], strict=True):
            assert field == [name, low, width]
            low += width


def test_modules(made):
    """Each module stands once, under its own name; the top comes first; nothing is lost from the text."""
    _, verilog = made
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
