"""The page and the sheet: self-contained, the same bytes each time, and with the numbers of the run in the DOM."""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.overlay.build.measured import Measured
from bitloom.overlay.build.reference_designs import reference_design
from bitloom.overlay.show.report import blocks, plots
from bitloom.overlay.show.report.compiled import Compiled
from bitloom.overlay.show.report.figures import sheet, svg
from bitloom.overlay.show.report.gather import gather
from bitloom.overlay.show.report.page import page
from bitloom.overlay.show.report.plots import pictures
from bitloom.overlay.show.report.report import Report
from bitloom.overlay.show.report.text import number

VOID = {"meta", "link"}
Made = Callable[[str], Compiled]
Runs = Callable[[str], Measured]


class Dom(HTMLParser):
    """Parts of a page that tests look at: values of <data> by id, all ids, texts by element, whether tags pair up."""

    def __init__(self, text: str):
        super().__init__()
        self.values: dict[str, float] = {}
        self.ids: list[str] = []
        self.references: set[str] = set()
        self.headings: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "data" and given.get("id"):
            self.values[str(given["id"])] = float(str(given["value"]))
        for value in given.values():
            self.references |= set(re.findall(r"url\(#([^)]*)\)", value or ""))
        link = given.get("href") or given.get("xlink:href") or ""
        if link.startswith("#"):
            self.references.add(link[1:])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
        self.text.append(data)


def numbers(report: Report) -> dict[str, float]:
    """Values that the DOM must have, from the counters of the run."""
    counters = report.run.counters
    few = counters[report.run.frames // 2]
    many = counters[report.run.frames]
    steady = {name: (many[name] - few[name]) / (report.run.frames / 2) for name in many}
    area = report.area.resources
    expected = {
        "cycles_per_frame": steady["cycles"],
        "latency_cycles": counters[1]["cycles"],
        "frames": report.run.frames,
        "bit_exact_frames": report.run.bit_exact_frames,
        "area-lut": area.device_lut,
        "area-lutram": area.lutram,
        "area-bram36": area.bram36,
        "memory-bram36": area.bram36,
    }
    for n in range(len(report.npus)):
        expected[f"npu{n}-cycles"] = steady["cycles"]
        for key in report.npus[n].spent:
            expected[f"npu{n}-{key}"] = steady[f"npu{n}_{key}"]
    for length, own in counters.items():
        expected |= {f"run{length}-{name}": value for name, value in own.items()}
    return expected | {f"beats-{w.label}": w.beats for w in report.work}


def check(dom: Dom, report: Report) -> None:
    expected = numbers(report)
    assert {key: dom.values[key] for key in expected} == expected


def test_the_numbers_of_the_page(report: Report, no_plots: None) -> None:
    dom = Dom(page(report))
    check(dom, report)
    for n, npu in enumerate(report.npus):
        assert sum(dom.values[f"npu{n}-{key}"] for key in npu.spent) == dom.values["cycles_per_frame"]


def drawn(draw: Callable[[Axes, Report], None], report: Report) -> list[tuple[float, float, float]]:
    """(row, begin, length) of every bar."""
    axes = Figure().add_subplot()
    draw(axes, report)
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in bars]


def test_each_owner_of_memories_has_a_row(one: Report) -> None:
    axes = Figure().add_subplot()
    plots.memory(axes, one)
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == [*(f"NPU {n}" for n in range(len(one.npus))), "shared"]


def ends(bars: list[tuple[float, float, float]], rows: int) -> list[float]:
    """Where the bars of each row end, of which each begins where the one before it ends."""
    times_of_rows = [0.0] * rows
    for row, begin, length in bars:
        assert begin == pytest.approx(times_of_rows[round(row)])
        times_of_rows[round(row)] += length
    return times_of_rows


def test_the_bars_are_the_numbers(one: Report) -> None:
    assert ends(drawn(plots.utilisation, one), len(one.npus)) == pytest.approx([n.cycles for n in one.npus])
    assert ends(drawn(plots.lanes, one), len(one.work)) == pytest.approx([w.beats for w in one.work])
    owners = list(dict.fromkeys(m.npu for m in one.memories))
    kbit = [sum(m.bits for m in one.memories if m.npu == owner) / 1024 for owner in owners]
    assert ends(drawn(plots.memory, one), len(owners)) == pytest.approx(kbit)
    spans = sorted((s.layer, s.begin, s.end + 1 - s.begin) for s in one.timeline.spans)
    assert sorted((round(row), begin, width) for row, begin, width in drawn(plots.timeline, one)) == spans


@pytest.mark.sample(1)
def test_the_page_loads_nothing(report: Report) -> None:
    text = page(report)
    assert not re.search(r"https?:|//[a-z]|@import|<script|<img|<iframe|src=", text)
    assert re.findall(r"url\((?!#)", text) == []
    assert "default-src 'none'" in text
    dom = Dom(text)
    assert dom.open == []
    assert len(dom.ids) == len(set(dom.ids))
    assert dom.references <= set(dom.ids)


@pytest.mark.slow
def test_equal_reports_are_equal_bytes(compiled_network: Made, run: Runs, tmp_path: Path) -> None:
    """Made twice from the start, also with other settings of matplotlib's user."""
    texts, pngs = [], []
    for size in (10, 20):
        report = gather(compiled_network("streamed"), run("streamed"))
        with matplotlib.rc_context({"font.size": size, "lines.linewidth": size}):
            texts.append(svg(report, pictures(report)[0]))
            sheet(report, tmp_path / "new" / "sheet.png")
            pngs.append((tmp_path / "new" / "sheet.png").read_bytes())
    assert texts[0] == texts[1]
    assert pngs[0] == pngs[1]
    assert pngs[0].startswith(b"\x89PNG")
    width, height = (int.from_bytes(pngs[0][i : i + 4], "big") for i in (16, 20))
    assert width == 14.6 * 120
    assert height > width / 3


def test_wrong_frames_are_seen(one: Report, no_plots: None) -> None:
    text = page(replace(one, run=replace(one.run, bit_exact_frames=3)))
    assert re.search(r'class="wrong"><data id="bit_exact_frames" value="3">3</data> <small>of', text)
    assert re.search(r'class="right"><data id="bit_exact_frames" value="4">4</data> <small>of', page(one))


def test_where_the_area_comes_from(one: Report, no_plots: None) -> None:
    assert "By the model of <code>bitloom explore</code>" in page(one)
    assert "By Yosys for Xilinx 7 series" in page(replace(one, area=replace(one.area, source="yosys")))


def test_names_are_escaped(one: Report, no_plots: None) -> None:
    layers = (replace(one.npus[0], layers=("<b>",)),)
    assert "&lt;b&gt;" in blocks.picture(replace(one, npus=layers))
    network = copy(one.network)
    object.__setattr__(network, "name", "a<b>")  # no network can have such a name; the page escapes it all the same
    text = page(replace(one, network=network))
    assert "<h1>a&lt;b&gt; on digits-cnn</h1>" in text
    assert "<b>" not in text


def ring_report(one: Report) -> Report:
    """A ring of 2 with a layer on each of its NPUs in turn; of the run nothing but shares is looked at."""
    model = networks.load("cifar-quick-int8")
    chosen = reference_design("cifar-quick-int8-ring2")
    design = size_memories("ring", [model], chosen.npus, chosen.choices, sizing=Sizing(spill_words=7))
    npus = tuple(replace(one.npus[0], npu=n, layers=own) for n, own in enumerate((("conv_1", "conv_3"), ("conv_2",))))
    return replace(one, design=design, npus=npus, mapping=(0, 1, 0), crossings=frozenset({(0, 1), (1, 0)}))


def test_the_picture_of_a_ring(one: Report) -> None:
    text = blocks.picture(ring_report(one))
    assert text.count('class="npu"') == 2
    assert text.count("ping-pong 2 \N{MULTIPLICATION SIGN} 16 words of 64 bit") == 2
    assert "spill store 7 \N{MULTIPLICATION SIGN} 64 bit" in text
    assert text.count('class="edge"') == 4  # frames, results, and an edge each way
    assert text.count("unused") == 1  # results of NPU 1
    assert "map store" not in text


def test_the_picture_of_a_chain_stays_inside_its_frame(report: Report) -> None:
    text = blocks.picture(report)
    height = int(re.search(r'viewBox="0 0 620 (\d+)"', text)[1])
    bottoms = [
        int(y) + int(h) for y, h in re.findall(r'<rect x="\d+" y="(\d+)" width="\d+" height="(\d+)" class="npu"', text)
    ]
    assert len(bottoms) == len(report.npus)
    assert max(bottoms) == height - 12


TEXTS = {0: "0", 7: "7", 1346.0: "1,346", 2620.5: "2,620.5", 3.375: "3.375", 0.1778: "0.178", 0.5: "0.5", 100: "100"}
TEXTS |= {28_800: "28,800", 73_637.70: "73,637.7", 205.997: "206", 13.78: "13.78"}


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), *TEXTS.items()])
def test_numbers_as_text(value: float, text: str) -> None:
    assert number(value) == text


# in a browser


def test_texts_are_no_markup(one: Report, no_plots: None) -> None:
    """A model file of any name, and the commands that name it."""

    class Texts(HTMLParser):
        def __init__(self, text: str):
            super().__init__()
            self.tags: list[str] = []
            self.text = ""
            self.feed(text)

        def handle_starttag(self, tag: str, _: object) -> None:
            self.tags.append(tag)

        def handle_data(self, data: str) -> None:
            self.text += data

    hostile = "<script>alert(1)</script> <b onclick='x'>&amp;\"{{ r }}"
    texts = Texts(page(replace(one, weights=f"model file {hostile}.npz", commands=(hostile,))))
    assert texts.tags == Texts(page(replace(one, weights="model file x.npz", commands=("x",)))).tags
    assert texts.text.count(hostile) == 2
