"""Classes and scores: what follows from a program's outputs, and from what it has the host do."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from bitloom.hls_gen.design.program import Program

from .errors import DeviceError

Array = NDArray[Any]
Progress = Callable[[int, int], None]


class Classifier(ABC):
    """What computes a program's outputs.

    Attributes
    ----------
    name
        For messages.
    program
        The loaded program; None before.
    """

    name: str
    program: Program | None

    @abstractmethod
    def predict(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Compute the network's outputs, (N, H', W', C') int64, for (N, H, W, C) values of its input."""

    def classify(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Class of each image, (N,): the number of the largest output, of equal ones the first.

        Of single bits it is the last one that is set, else 0.

        Parameters
        ----------
        images
            As ``predict`` takes them. If the program is of an imported network (`bitloom import`), images as its file
            takes them, such as (N, C, H, W) real numbers: the host quantises them, and makes scores of the outputs as
            the file does. Their largest one is the class.
        batch, progress
            As for ``predict``.

        Raises
        ------
        ValueError
            Also if an image or a score isn't finite. Else as ``predict``.
        """
        program = self._need_program()
        return program.classify(self.predict(program.to_input(images), batch, progress))

    def scores(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """What an imported network's file computes of images: (N, scores) float64, with its softmax if it has one.

        Parameters, images as the file takes them, and errors are those of ``classify``; ValueError also where the
        program isn't of an imported network.
        """
        program = self._need_program()
        if program.host is None:
            raise ValueError(f"{program.name}: scores are of imported networks, got a program without the host's part")
        return program.host.closed(self.predict(program.to_input(images), batch, progress))

    def _need_program(self) -> Program:
        if self.program is None:
            raise DeviceError(f"{self.name}: a program must be loaded before images, got none")
        return self.program
