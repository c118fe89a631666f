"""What is written of a network from outside: its names are a stranger's, and stay text."""

import re
from html import unescape

import numpy as np
import pytest

from bitloom.overlay.importers.explain import LETTERS, picture, rows, write_explanation
from bitloom.overlay.importers.imported import import_file, import_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph

from .onnx_files import Chain
from .tflite_files import Chain as TfliteChain

markdown = pytest.importorskip("markdown", reason="the extra docs is not installed")
NAMES = (
    "<script>alert(1)</script>", "![i](http://a/b.png)", "[c](javascript:alert(1))", "a|b", "a\\|b", "a\\", "`code`",
    "*b* _i_ __u__", "&lt;", "<http://a>", "plain_name_1", "~~s~~", "$x$",
)  # fmt: skip


def test_names_in_markdown_and_html(tmp_path):
    chain = Chain((2, 4, 4)).quant(0.5, 3).node("Conv", np.ones((3, 2, 3, 3), np.float32))
    for _ in NAMES:
        chain.node("Identity")
    model = chain.model()
    for node, name in zip(model.graph.node[2:], NAMES, strict=True):
        node.name = name
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    pages = [path.read_text(encoding="utf-8") for path in write_explanation(
        import_file(tmp_path / "net.onnx"), [], tmp_path / "net.npz")]  # fmt: skip
    page = markdown.markdown(pages[0], extensions=["tables"])
    assert set(re.findall(r"<[^>]*>", page)) <= {
        f"<{end}{tag}>" for end in ("", "/") for tag in ("h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td")
    }
    for text in (page, pages[1]):
        cells = [unescape(row) for row in re.findall(r"<tr>\s*<td>(.*?)</td>", text)]
        assert cells[2 : 2 + len(NAMES)] == list(NAMES)
    assert "| plain_name_1 | Identity |" in pages[0]


def test_what_the_host_does_stands_at_its_end():
    """DEQUANTIZE makes scores here; it was said to be in front of the accelerator."""
    rng = np.random.default_rng(4)
    chain = TfliteChain((3, 4, 2), kind="FLOAT32").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3))
    chain = chain.dense(rng, 6, (0.02, 3)).operator("DEQUANTIZE", (1, 6), kept="FLOAT32")
    found = rows(import_graph(to_tflite_graph(chain.bytes()), name="chain"))
    assert [(op, how) for _, op, became, how in found if became == "host"] == [
        ("QUANTIZE", "before the accelerator"), ("DEQUANTIZE", "after the accelerator"),
    ]  # fmt: skip


def boxes(svg):
    """Left and upper edge, width and height of each box."""
    found = re.findall(r'<rect x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)" height="([0-9.]+)"', svg)
    return [tuple(map(float, one)) for one in found]


def test_boxes_do_not_overlap_and_hold_their_text():
    """The host computes in front and behind: its one box lay on that of a layer, and wide letters left their box."""
    rng = np.random.default_rng(4)
    chain = TfliteChain((6, 6, 3), kind="FLOAT32").operator("QUANTIZE", (1, 6, 6, 3), (0.05, -3))
    chain = chain.conv(rng, 8, (3, 3), (0.02, -128), activation="RELU").dense(rng, 6, (0.02, 3))
    chain = chain.operator("DEQUANTIZE", (1, 6), kept="FLOAT32")
    made = import_graph(to_tflite_graph(chain.bytes()), name="chain")
    svg = picture(made)
    found = boxes(svg)
    assert len(found) == 8, "four nodes, and what each became"
    for number, (x, y, width, height) in enumerate(found):
        for other_x, other_y, other_width, other_height in found[:number]:
            beside = x + width <= other_x or other_x + other_width <= x
            assert beside or y + height <= other_y or other_y + other_height <= y
    letters = max(len(unescape(text)) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert letters <= LETTERS
    assert min(width for _, _, width, _ in found) - 6 >= 8.6 * LETTERS, "capitals of 12 px have 8.6 on average"
