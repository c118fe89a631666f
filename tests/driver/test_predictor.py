"""Functions that one board and several have in common."""

import dataclasses

import numpy as np

from bitloom.driver.predictor import Predictor
from bitloom.hls_gen.design.program import Program
from tests.errors import value_error

from . import design


class Board(Predictor):
    """A board that counts the calls of ``predict``."""

    def __init__(self, program: Program):
        self.program = program
        self.calls = 0

    def predict(self, images, batch=None, progress=None):
        self.calls += 1
        return np.zeros((len(images), *self.program.network_shape), np.int64)

    def _need_program(self) -> Program:
        return self.program


def test_no_frame_runs_for_classes_of_several_outputs():
    program = design.program(design.model(), design.manifest())
    images = np.zeros((2, program.input.height, program.input.width, program.input.channels), np.int64)
    board = Board(program)
    board.classify(images)
    assert board.calls == 1
    board = Board(dataclasses.replace(program, output_maps=2))
    with value_error(f"{program.name}: classes are of networks with one output, got 2"):
        board.classify(images)
    assert board.calls == 0
