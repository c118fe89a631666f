"""Base of one board and of several: outputs of images, and what the host makes of outputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.program import Program

Progress = Callable[[int, int], None]
"""Called with (done, all) while something runs."""


class Predictor(ABC):
    """Computes a loaded network: an Accelerator, or an AcceleratorGroup of several boards."""

    @abstractmethod
    def predict(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Compute the network's outputs, which equal golden's: (N, H', W', C') int64."""

    @abstractmethod
    def _need_program(self) -> CompiledNetwork[Program]:
        """The loaded program; DeviceError where there is none."""

    def classify(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Class of each image, (N,): the number of the largest output, of equal ones the first.

        If outputs are single bits, the class is the number of the last bit that is set, or 0 if none is.

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
            Before a frame runs, if the network has several outputs, or one that is no vector of classes. Also if an
            image or a score isn't finite. Else as ``predict``.
        """
        program = self._need_program()
        program.require_classes()
        return program.classify(self.predict(program.to_input(images), batch, progress))

    def scores(
        self, images: Array, batch: int | None = None, progress: Progress | None = None
    ) -> Array | dict[str, Array]:
        """Scores as an imported network's file computes them: (N, ...) float64 in the shape of its output, behind its
        softmax if it has one.

        Of a file with several outputs: each by the name that the file gives it.

        Parameters and errors are those of ``classify``; images are as the file takes them. ValueError also if the
        program isn't of an imported network.
        """
        program = self._need_program()
        if program.host is None:
            raise ValueError(f"{program.name}: scores are of imported networks, got a program without the host's part")
        return program.host.closed(self.predict(program.to_input(images), batch, progress))
