"""A dense layer at a network's input may read one tuple with all values, not a tuple for each position.

    input H x W x C, dense --> input 1 x 1 x (H W C), dense with the same weights

The values keep their order (row, column, channel), and with it the numbers of their bits. A word of the array then
holds values of several positions: 784 pixels of one channel each are 784 lanes, not 784 taps.
"""

from dataclasses import replace

from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Model


def with_flat_input(model: Model, lanes: int) -> Model:
    """Make a dense layer at the input read one tuple.

    Parameters
    ----------
    model : Model
    lanes : int
        Channels of an input word.

    Returns
    -------
    Model
        Its input is one tuple if only a dense layer reads the input, a position has fewer than ``lanes`` channels (so
        that words would stay partly empty), and no word whose products are ORed would change; else ``model`` itself.
    """
    network = model.network
    source = network.input
    first = network.next_layer(INPUT)
    if not isinstance(first, Dense) or source.height * source.width == 1 or source.channels >= lanes:
        return model
    if first.word_channels and source.channels % first.word_channels:
        return model
    weight = model.arrays[first.name]["weight"]
    tuple_map = Map(height=1, width=1, channels=source.size, encoding=source.encoding)
    arrays = {**model.arrays, first.name: {"weight": weight.reshape(len(weight), 1, 1, -1)}}
    return Model(replace(network, input=tuple_map), arrays)
