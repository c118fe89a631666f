"""Random ONNX files in three forms: with QuantizeLinear and DequantizeLinear ("qdq"), with onnxruntime's operators on
integers ("qoperator"), and with QONNX's quantisers ("qonnx").

    onnx_writer.py --> onnx_quantisers.py --> onnx_values.py, onnx_places.py --> onnx_weights.py --> this
"""

from bitloom.overlay.importers.activations import OVER_CLASSES

from .onnx_weights import OnnxWeights
from .onnx_writer import OnnxMap
from .pick import Pick
from .random_files import RandomFile

CLOSINGS = (*OVER_CLASSES, "Sigmoid")
"""Functions that the host computes at an end, with values of its own."""
EXACT_TRIES = 30
"""Files that are begun at most until floating point is exact in one."""


class OnnxDrawing(OnnxWeights):
    """An ONNX file of all steps; parameters as of `OnnxWriter`."""

    STEPS = (
        *("conv",) * 6,
        *("join",) * 3,
        *("pool",) * 3,
        *("activation",) * 2,
        "transposed",
        "with_constant",
        "gated",
        "concatenate",
        "split",
        "cut",
        "pad",
        "resize",
        "blocks",
        "transpose",
        "reduce",
        "reshape",
        "dense",
        "dense_at_each_place",
        "requantise",
        "nothing",
    )

    def draw(self) -> RandomFile:
        """The file."""
        here = self.source()
        if not self.chance(8):  # a network begins with weights, as an engine does
            here = self.conv(here) or self.dense(here)
        here = self.grow(here)
        outputs = [self.end(here), *(self.leaves(each) for each in self.leaving(here)[1:])]
        halves = self.powers and self.exact
        twin = self._file(self._twin, outputs) if self.form == "qoperator" else b""
        return RandomFile(data=self._file(self._nodes, outputs), twin=twin, halves=halves)

    def end(self, here: OnnxMap) -> str:
        """Append the end of a file, and return its tensor: perhaps a dense layer; real numbers, and a function of the
        host."""
        if self.pick.flip():
            here = self.dense(here)
        closing = self.pick.of([*CLOSINGS, "", "", "", ""])
        if closing:
            attributes = {"axis": self.pick.of([-1, 1])} if closing in OVER_CLASSES else {}
            return self.node(closing, self.real(here), **attributes)
        return self.leaves(here)

    def leaves(self, here: OnnxMap) -> str:
        """The tensor of a map that leaves: its real numbers, or its integers, if onnxruntime can give them."""
        integers = not here.kind.endswith("4") and self.pick.flip()
        return here.name if self.form == "qonnx" or integers else self.real(here)


def random_onnx(form: str, pick: Pick) -> RandomFile:
    """A random ONNX file of that form; once in four times, if one is found, of those in which floating point is exact,
    as only these say how halves are rounded, and few files are of them."""
    if pick.integer(1, 4) == 1:
        for _ in range(EXACT_TRIES):
            drawing = OnnxDrawing(pick, form)
            if drawing.powers and (file := drawing.draw()).halves:
                return file
    return OnnxDrawing(pick, form).draw()
