"""The flow model's main property: cycles, beats and waits are those of the hardware, to the cycle. Here is a case in
which a single cycle decides; random networks are in tests/overlay/build/board_cases.py."""

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.design.design import Design
from tests.graph_text import network_of
from tests.networks import random_model
from tests.overlay.build.board_cases import SMALL_BINARY
from tests.simulated import compare


def test_a_tuple_memory_of_two_words() -> None:
    """How soon a word that was given back is written again decides the rate: a cycle more or less is 359 cycles more or
    less in four frames (`hls_gen.compiler.flow.streams.GIVE_BACK`)."""
    model = random_model(network_of("12x12x8", "conv_1 8 2x2 stride=2x2, act_1, dense_2 8", name="tight"), 0)
    design = Design(name="tight", npus=(SMALL_BINARY.changed(kfp=8, kgp=8, pfp=8, ol=8, tuple_words=2),))
    compare(design, model, CompileChoices(map_order="pull"), batches=(1, 2, 4))
