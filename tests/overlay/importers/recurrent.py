"""How far an LSTM with fewer bits is from TFLite's: the table of docs/decisions/0030-recurrent-layers.md.

    pip install ai-edge-litert
    python -m tests.overlay.importers.recurrent ../shared/data/tflite_real/trained_lstm_int8.tflite

A model of the layer in real numbers rounds where TFLite's kernel rounds, to as many bits as a row of the table says.
Its hidden values and classes are compared with LiteRT's reference kernels, on random drawings.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FRAMES = 60
STEPS, CELLS = 28, 20
GATE_RANGE, STATE_RANGE = 8.0, 8.0
"""Sums of gates, and states, lie between -8 and 8: TFLite's fixed point with 3 bits in front of the point."""
GATES = ((15, 11, 7), (14, 10, 6), (13, 9, 5), (12, 8, 4))
"""Weights of the inputs, of the hidden values, and biases, of the input, forget, cell and output gate."""
INPUT, HIDDEN, SCORES, DENSE, DENSE_BIAS = 0, 23, 25, 3, 2
"""Other tensors of the file."""
WIDTHS = ((16, 16, 16), (8, 8, 16), (9, 9, 9), (8, 8, 8))
"""Bits of a gate in front of its function and behind it, and of the state."""


@dataclass
class File:
    """The file's layer in real numbers, and LiteRT's interpreter of it."""

    interpreter: Any

    def real(self, tensor: int) -> Array:
        """A constant of the file in real numbers; all zero points of constants are 0."""
        values: Array = self.interpreter.get_tensor(tensor).astype(float) * self.scale(tensor)
        return values

    def scale(self, tensor: int) -> float:
        """The scale of a tensor."""
        details = {each["index"]: each for each in self.interpreter.get_tensor_details()}
        return float(details[tensor]["quantization_parameters"]["scales"][0])

    def run(self, drawing: Array) -> tuple[Array, int]:
        """Hidden values, (28, 20) integers, and the class of a drawing, (28, 28) from 0 to 255."""
        self.interpreter.reset_all_variables()
        self.interpreter.set_tensor(INPUT, (drawing - 128).astype(np.int8)[None])
        self.interpreter.invoke()
        hidden = self.interpreter.get_tensor(HIDDEN)[0].astype(int)
        return hidden, int(self.interpreter.get_tensor(SCORES).argmax())


def rounded(values: Array, most: float, bits: int) -> Array:
    """Values from -most to most as the nearest ones of so many bits."""
    step = most / 2 ** (bits - 1)
    result: Array = np.clip(np.round(values / step), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * step
    return result


def layer(file: File, drawing: Array, widths: tuple[int, int, int]) -> Array:
    """Hidden values of a drawing, (28, 20) integers, with gates and state of so many bits."""
    before, behind, of_state = widths
    gates = [tuple(file.real(tensor) for tensor in gate) for gate in GATES]
    scale = file.scale(HIDDEN)
    hidden, state = np.zeros(CELLS), np.zeros(CELLS)
    steps = []
    for row in drawing / 255:
        sums = [rounded(row @ w.T + hidden @ r.T + bias, GATE_RANGE, before) for w, r, bias in gates]
        functions = [np.tanh(each) if number == 2 else 1 / (1 + np.exp(-each)) for number, each in enumerate(sums)]
        write, keep, candidate, out = (rounded(each, 1.0, behind) for each in functions)
        state = rounded(keep * state + write * candidate, STATE_RANGE, of_state)
        steps.append(np.clip(np.round(out * np.tanh(state) / scale), -128, 127))
        hidden = steps[-1] * scale
    return np.array(steps)


def drawings(count: int) -> Array:
    """Random strokes, (count, 28, 28) from 0 to 255."""
    rng = np.random.default_rng(1)
    images = np.zeros((count, STEPS, 28))
    for image in images:
        place = np.array([14.0, 14.0])
        for _ in range(60):
            place = np.clip(place + rng.normal(0, 1.6, 2), 3, 24)
            y, x = place.astype(int)
            image[y - 1 : y + 2, x - 1 : x + 2] = np.maximum(image[y - 1 : y + 2, x - 1 : x + 2], rng.uniform(0.5, 1))
    return np.round(images * 255)


def main() -> None:
    """Print the rows of the table."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        sys.argv[1],
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    file = File(interpreter)
    images = drawings(FRAMES)
    expected = [file.run(image) for image in images]
    dense, bias = file.real(DENSE), file.real(DENSE_BIAS)
    for widths in WIDTHS:
        results = [layer(file, image, widths) for image in images]
        apart = np.abs([result - hidden for result, (hidden, _) in zip(results, expected)])
        scores = [result.reshape(-1) * file.scale(HIDDEN) @ dense.T + bias for result in results]
        other = np.mean([each.argmax() != number for each, (_, number) in zip(scores, expected)])
        bits = ", ".join(map(str, widths))
        print(f"| {bits} bits | {np.mean(apart > 0):.1%} | {apart.max():.0f} | {other:.0%} |")


if __name__ == "__main__":
    main()
