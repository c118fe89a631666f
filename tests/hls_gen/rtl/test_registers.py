"""Register block: AXI4-Lite, every register of the map, interrupts, counters."""

import random

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import IDENT, VERSION, register_map
from bitloom.hls_gen.design.topology import ring
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.shell.registers import registers

from .bench import Agent, Bench, Sink, Source, bench_of, run

DESIGN = Design(name="registers", stream_bits=64, npus=(Npu.of(kfp=24, kgp=5, pfp=7, ol=2),))
DIGEST = "".join(f"{0x11 * (k % 15 + 1):02x}" for k in range(32))
MAP = {r.name: r for r in register_map(DESIGN)}
MAP_BY_OFFSET = {r.offset: r for r in MAP.values()}
OKAY, SLVERR = 0, 2
LIMIT = 100

ERROR = {"error_code": 9, "error_header": 0xB1020304, "error_address": 0x89ABCDEF, "error_length": 0xFEDCBA98}
LEVELS = {"idle": 1, "loaded": 1, "loader_state": 5, **ERROR, "signature": 0x5A5AA5A5, "npu0_state": 0x7123456}
"""Values that the test puts on the status inputs."""

COUNTERS = {"FRAMES": "frame_left", "WORDS_IN": "word_taken", "WORDS_OUT": "word_given", "NPU0_BEATS": "npu0_beat"}
COUNTERS |= {f"NPU0_WAIT_{what.upper()}": f"npu0_wait_{what}" for what in ("input", "room", "table")}
COUNTERS["CYCLES"] = "computing"
"""Counter: the input that it counts."""
ZERO = ("SCRATCH", "CONTROL", "ERROR_HEADER", "ERROR_ADDRESS", "ERROR_LENGTH", "OWNER", "IRQ_ENABLE", "IRQ_STATUS")
RESET = {
    "IDENT": IDENT,
    "VERSION": VERSION["MAJOR"] << 16 | VERSION["MINOR"] << 8 | VERSION["PATCH"],
    **{f"DIGEST_{k}": int(DIGEST[8 * k : 8 * k + 8], 16) for k in range(4)},
    "GEOMETRY": 1 | 64 << 8,
    "STATUS": 1 | 1 << 2 | 5 << 4,
    "ERROR_CODE": 9,
    "SIGNATURE": 0x5A5AA5A5,
    "NPU0_LANES": 24 | 5 << 16,
    "NPU0_WIDTHS": 7 | 2 << 16,
    "NPU0_STATE": 0x7123456,
    **dict.fromkeys((*ZERO, *COUNTERS), 0),
}
"""Every register, with those inputs."""


built = bench_of(lambda: registers(Library(64), DESIGN, DIGEST))


@pytest.fixture
def bench(built):
    for pulse in COUNTERS.values():
        built[pulse] = 0
    built.set(error=0, result_left=0, s_axi_awvalid=0, s_axi_wvalid=0, s_axi_arvalid=0, s_axi_bready=0, s_axi_rready=0)
    built.set(**LEVELS)
    built.reset()
    return built


def offset(register: str | int) -> int:
    return MAP[register].offset if isinstance(register, str) else register


class Write:
    """One write; the channels may be delayed by so many cycles. ``cycles`` from the first valid to the answer taken."""

    def __init__(self, bench, register, data, strobes=15, address_delay=0, data_delay=0, response_delay=0):
        begin = bench.cycle
        address = {"awvalid": 1, "awaddr": offset(register)}
        word = {"wvalid": 1, "wdata": data, "wstrb": strobes}
        answered = None
        while True:
            age = bench.cycle - begin
            bench.set(s_axi_awvalid=0, s_axi_wvalid=0, s_axi_awaddr=0xFFF, s_axi_wdata=0xDEADBEEF, s_axi_wstrb=0)
            if address and age >= address_delay:
                bench.set(**{f"s_axi_{k}": v for k, v in address.items()})
            if word and age >= data_delay:
                bench.set(**{f"s_axi_{k}": v for k, v in word.items()})
            if bench["s_axi_bvalid"] and answered is None:
                answered = bench.cycle
                assert not address, "an answer needs the address"
                assert not word, "an answer needs the data"
            ready = answered is not None and bench.cycle - answered >= response_delay
            bench["s_axi_bready"] = int(ready)
            assert answered is None or bench["s_axi_bvalid"], "bvalid fell before bready"
            if ready:
                self.response = bench["s_axi_bresp"]
            if bench["s_axi_awvalid"] and bench["s_axi_awready"]:
                address = {}
            if bench["s_axi_wvalid"] and bench["s_axi_wready"]:
                word = {}
            bench.tick()
            if ready:
                break
            assert bench.cycle - begin < LIMIT, "no answer"
        self.cycles = bench.cycle - begin
        bench["s_axi_bready"] = 0
        assert not bench["s_axi_bvalid"]


def write(bench: Bench, register: str | int, data: int, **shape: int) -> None:
    assert Write(bench, register, data, **shape).response == OKAY


def read(bench: Bench, register: str | int, delay: int = 0) -> int:
    begin = bench.cycle
    taken = False
    shown = None
    waited = 0
    while True:
        bench.set(s_axi_arvalid=int(not taken), s_axi_araddr=0xFFF if taken else offset(register))
        valid = bench["s_axi_rvalid"]
        assert shown is None or (valid and bench["s_axi_rdata"] == shown), "the answer changed before rready"
        if valid:
            shown = bench["s_axi_rdata"]
        ready = valid and waited >= delay
        waited += valid
        bench["s_axi_rready"] = int(ready)
        assert not valid or bench["s_axi_rresp"] == OKAY
        taken = taken or bench["s_axi_arready"] == 1
        bench.tick()
        if ready:
            break
        assert bench.cycle - begin < LIMIT, "no answer"
    bench.set(s_axi_rready=0, s_axi_arvalid=0)
    assert not bench["s_axi_rvalid"]
    return shown


MOST_CYCLES = 40
"""Cycles in which every access is answered: a round of 16 turns of counters, and few more."""


def answer(bench: Bench, address: int) -> tuple[int, int, int]:
    """(value, response, cycles) of a read of any address."""
    begin = bench.cycle
    bench.set(s_axi_arvalid=1, s_axi_araddr=address, s_axi_rready=1)
    while True:
        taken, valid = bench["s_axi_arready"], bench["s_axi_rvalid"]
        response = bench["s_axi_rdata"], bench["s_axi_rresp"]
        bench.tick()
        if taken:
            bench["s_axi_arvalid"] = 0
        if valid:
            return (*response, bench.cycle - begin)
        assert bench.cycle - begin < MOST_CYCLES, f"no answer to a read of 0x{address:X}"


def test_every_address_answers(bench):
    """Reads and writes of all 4,096: OKAY at multiples of 4, SLVERR elsewhere, where nothing is written or shown."""
    used = {r.offset for r in MAP.values()}
    bench.set(**dict.fromkeys(COUNTERS.values(), 1))
    for address in range(1 << 12):
        value, response, _ = answer(bench, address)
        assert response == (SLVERR if address % 4 else OKAY), hex(address)
        assert value == 0 or address in used, hex(address)
    bench.set(**dict.fromkeys(COUNTERS.values(), 0))
    before = {name: read(bench, name) for name in MAP}
    for address in range(1 << 12):
        if address not in used or MAP_BY_OFFSET[address].access == "RO":
            write = Write(bench, address, 0xFFFFFFFF)
            assert write.response == (SLVERR if address % 4 else OKAY), hex(address)
            assert write.cycles <= MOST_CYCLES
    assert {name: read(bench, name) for name in MAP} == before


def test_the_table_names_all_registers():
    assert set(RESET) == set(MAP)


@pytest.mark.parametrize("name", RESET)
def test_value_after_reset(bench, name):
    assert read(bench, name) == RESET[name]


def test_offsets_are_words_and_differ():
    assert all(r.offset % 4 == 0 for r in MAP.values())
    assert len({r.offset for r in MAP.values()}) == len(MAP)


def test_fields_do_not_overlap():
    for register in MAP.values():
        bits = [b for f in register.fields for b in range(f.lsb, f.lsb + f.width)]
        assert len(set(bits)) == len(bits)
        assert all(b < 32 for b in bits)


def test_status_follows_its_inputs(bench):
    bench.set(idle=0, loaded=0, loader_state=2, error=1)
    assert read(bench, "STATUS") == 1 << 1 | 2 << 4


SHAPES = [{}, *({f"{part}_delay": delay} for part in ("address", "data") for delay in (1, 7)), {"response_delay": 30}]
SHAPES += [{"address_delay": 3, "response_delay": 5}, {"data_delay": 2, "response_delay": 1}]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_write_shapes(bench, shape):
    """Address and data in any order, the answer taken late."""
    write(bench, "SCRATCH", 0x13579BDF, **shape)
    assert read(bench, "SCRATCH") == 0x13579BDF
    write(bench, "IRQ_ENABLE", 2, **shape)
    assert (read(bench, "SCRATCH"), read(bench, "IRQ_ENABLE")) == (0x13579BDF, 2)


@pytest.mark.parametrize("delay", [0, 1, 30])
def test_read_waits_for_rready(bench, delay):
    write(bench, "SCRATCH", 0xFFFFFFFF)
    assert read(bench, "SCRATCH", delay) == 0xFFFFFFFF
    assert read(bench, "GEOMETRY", delay) == RESET["GEOMETRY"]


def test_latency(bench):
    """The module's text: a write takes 2 cycles, a read 3; in the next one the answer is taken."""
    assert Write(bench, "SCRATCH", 1).cycles == 3
    begin = bench.cycle
    read(bench, "SCRATCH")
    assert bench.cycle - begin == 4


@pytest.mark.parametrize("strobes", range(15))
def test_partial_write_is_refused(bench, strobes):
    write(bench, "SCRATCH", 0x600D600D)
    for name, data in (("SCRATCH", 0), ("CONTROL", 7), ("IRQ_ENABLE", 3)):
        assert Write(bench, name, data, strobes=strobes).response == SLVERR
        assert not bench["soft_reset"]
    assert (read(bench, "SCRATCH"), read(bench, "CONTROL"), read(bench, "IRQ_ENABLE")) == (0x600D600D, 0, 0)
    write(bench, "SCRATCH", 0x1)
    assert read(bench, "SCRATCH") == 1


def test_the_header_is_shown_where_there_is_an_error(bench):
    bench["error"] = 1
    shown = {name: read(bench, name) for name in RESET if name.startswith("ERROR_")}
    names = [name for name in LEVELS if name.startswith("error_")]
    assert shown == {name.upper(): LEVELS[name] for name in names}


def test_owner(bench):
    """16 bits that are kept until a reset or a LOAD, which wins over a write in the same cycle."""
    for forget in ("soft_reset", "load_begins"):
        write(bench, "OWNER", 0xFFFF8001)
        write(bench, "SCRATCH", 3)
        assert read(bench, "OWNER") == 0x8001
        if forget == "soft_reset":
            write(bench, "CONTROL", 2)
        else:
            bench["load_begins"] = 1
            bench.tick()
            bench["load_begins"] = 0
        assert read(bench, "OWNER") == 0
    bench["load_begins"] = 1
    write(bench, "OWNER", 5)
    bench["load_begins"] = 0
    assert read(bench, "OWNER") == 0


def test_start(bench):
    assert bench["start"] == 0
    write(bench, "CONTROL", 1)
    assert (bench["start"], read(bench, "CONTROL")) == (1, 1)
    write(bench, "CONTROL", 0)
    assert (bench["start"], read(bench, "CONTROL")) == (0, 0)


def axi_write(bench: Bench, *items: tuple[str, int]) -> list[Agent]:
    """Agents that make these writes as fast as the block takes them."""
    return [
        Source(bench, "s_axi_aw", [{"addr": offset(name)} for name, _ in items]),
        Source(bench, "s_axi_w", [{"data": data, "strb": 15} for _, data in items]),
        Sink(bench, "s_axi_b", ["resp"], len(items)),
    ]


def test_soft_reset_keeps_enable_and_clears_pending(bench):
    write(bench, "IRQ_ENABLE", 1)
    bench["result_left"] = 1
    bench.tick()
    bench["result_left"] = 0
    write(bench, "SCRATCH", 7)
    write(bench, "CONTROL", 3)
    bench.tick()
    assert (read(bench, "IRQ_STATUS"), read(bench, "IRQ_ENABLE"), read(bench, "SCRATCH")) == (0, 1, 7)


@pytest.mark.parametrize("name", COUNTERS)
def test_counter(bench, name):
    """Counts cycles in which its input is 1, alone; those of an NPU only while a frame is in flight; and clears."""
    draw = random.Random(name)
    counts = dict.fromkeys(COUNTERS, 0)
    for _ in range(50):
        pulse, computing = draw.getrandbits(1), draw.getrandbits(1)
        bench["computing"] = computing
        bench[COUNTERS[name]] = pulse
        counts["CYCLES"] += bench["computing"]
        if name != "CYCLES":
            counts[name] += pulse & (computing if name.startswith("NPU") else 1)
        bench.tick()
    bench.set(**{COUNTERS[name]: 0, "computing": 0})
    assert {n: read(bench, n) for n in COUNTERS} == counts
    write(bench, "CONTROL", 5)
    assert {n: read(bench, n) for n in COUNTERS} == dict.fromkeys(COUNTERS, 0)
    assert (read(bench, "CONTROL"), bench["start"]) == (1, 1)


def test_reset_clears_every_counter(bench):
    bench.set(**dict.fromkeys(COUNTERS.values(), 1))
    bench.tick(40)
    bench.set(**dict.fromkeys(COUNTERS.values(), 0))
    assert min(read(bench, name) for name in COUNTERS) >= 40
    bench.reset()
    assert {name: read(bench, name) for name in COUNTERS} == dict.fromkeys(COUNTERS, 0)


@pytest.mark.parametrize("moment", range(len(COUNTERS)))  # counters take turns
def test_clear_wins_over_a_pulse(bench, moment):
    """Two counters whose inputs stay 1 are equal after a clear, whatever they were; both count from then on."""
    bench["frame_left"] = 1
    bench.tick(50 + moment)
    bench["word_taken"] = 1
    write(bench, "CONTROL", 4)
    after = bench.cycle
    bench.tick(7)
    bench.set(frame_left=0, word_taken=0)
    counted = bench.cycle - after  # the write takes effect with its answer
    assert (read(bench, "FRAMES"), read(bench, "WORDS_IN")) == (counted, counted)


def test_interrupt_of_a_result(bench):
    """Pending also while it is not enabled; a level until it is acknowledged with 1."""
    bench["result_left"] = 1
    bench.tick()
    bench["result_left"] = 0
    bench.tick()
    assert (read(bench, "IRQ_STATUS"), bench["irq"]) == (1, 0)
    write(bench, "IRQ_ENABLE", 2)
    assert bench["irq"] == 0
    write(bench, "IRQ_ENABLE", 1)
    assert bench["irq"] == 1
    write(bench, "IRQ_STATUS", 2)
    write(bench, "IRQ_STATUS", 0)
    assert (read(bench, "IRQ_STATUS"), bench["irq"]) == (1, 1)
    assert Write(bench, "IRQ_STATUS", 1, strobes=1).response == SLVERR
    assert bench["irq"] == 1
    write(bench, "IRQ_STATUS", 1)
    assert (read(bench, "IRQ_STATUS"), bench["irq"]) == (0, 0)


def test_interrupt_of_an_error(bench):
    """Raised where the error begins; acknowledged, it does not come back while the error stays."""
    write(bench, "IRQ_ENABLE", 2)
    bench["error"] = 1
    bench.tick(3)
    assert (read(bench, "IRQ_STATUS"), bench["irq"]) == (2, 1)
    write(bench, "IRQ_STATUS", 2)
    assert (read(bench, "IRQ_STATUS"), bench["irq"]) == (0, 0)
    bench["error"] = 0
    bench.tick()
    bench["error"] = 1
    bench.tick(2)
    assert read(bench, "IRQ_STATUS") == 2


def test_a_result_is_not_lost_in_the_cycle_of_its_acknowledgement(bench):
    """The acknowledgement acts in the second cycle after address and data; results from that cycle on are pending after
    it."""
    for moment in range(6):
        run(bench, *axi_write(bench, ("IRQ_STATUS", 3)))
        agents = axi_write(bench, ("IRQ_STATUS", 1))
        for cycle in range(8):
            bench["result_left"] = int(cycle == moment)
            run(bench, *agents, cycles=1)
        assert read(bench, "IRQ_STATUS") == int(moment >= 2), f"result in cycle {moment}"


def test_several_npus():
    """Each has registers of its own at a fixed distance; its counters count its own pulses."""
    design = Design(name="registers", npus=ring([Npu.of(kfp=3 + n, kgp=5 * n + 1, pfp=7 - n, ol=1) for n in range(3)]))
    offsets = {r.name: r.offset for r in register_map(design)}
    assert len(set(offsets.values())) == len(offsets)
    assert max(r.offset for r in register_map(Design(name="most", npus=ring([Npu.of()] * 32)))) < 1 << 12
    names = [name for name in offsets if name.startswith("NPU0_")]
    draw = random.Random(1)
    with Bench(registers(Library(32), design, DIGEST)) as bench:
        assert read(bench, offsets["GEOMETRY"]) == 3 | 32 << 8
        totals = {n: dict.fromkeys(("beat", "wait_input", "wait_room", "wait_table"), 0) for n in range(3)}
        bench["computing"] = 1
        for _ in range(40):
            for n, counts in totals.items():
                for name in counts:
                    bench[f"npu{n}_{name}"] = pulse = draw.getrandbits(1)
                    counts[name] += pulse
            bench.tick()
        for n, counts in totals.items():
            bench.set(**{f"npu{n}_{name}": 0 for name in counts})
            bench[f"npu{n}_state"] = 0x5A5A5A0 + n
        bench.tick(4)
        for n, counts in totals.items():
            shown = {name.removeprefix("NPU0_"): read(bench, offsets[name.replace("0", str(n), 1)]) for name in names}
            wanted = {"LANES": 3 + n | 5 * n + 1 << 16, "WIDTHS": 7 - n | 1 << 16, "STATE": 0x5A5A5A0 + n}
            counted = {name.upper() if name != "beat" else "BEATS": total for name, total in counts.items()}
            assert shown == {**wanted, **counted}
