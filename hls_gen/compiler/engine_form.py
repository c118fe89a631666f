"""Which form of a network engines take: exact rewritings (golden/rewrite.py) of a network before it is cut into
workloads (hls_gen/compiler/workloads.py). Concatenations become those that an NPU takes, and maps are copied where a
layer without weights has no convolution to follow."""

from dataclasses import replace

from bitloom.golden.network import Model, Network
from bitloom.golden.rewrite import rewrite

from . import concatenations, tail_copies
from .layer_graph import LayerGraph, ModelArrays, check_same


def engine_form(model: Model, repeat_input: bool = False) -> Model:
    """Rewrite a model so that an engine finds a workload for each layer, if it can.

    Parameters
    ----------
    model
        The layers with their arrays.
    repeat_input
        Whether several layers with weights may read the input, which is else copied.

    Returns
    -------
    Model
        With the same output; the model itself where there is nothing to rewrite.
    """
    network, arrays = _rewritten(model.network, model.arrays, repeat_input)
    return model if network is model.network else Model(network, arrays)


def engine_form_of(network: Network) -> Network:
    """The network of the model that `engine_form` gives, whatever its arrays are."""
    return _rewritten(network, {})[0]


def _rewritten(network: Network, arrays: ModelArrays, repeat_input: bool = False) -> tuple[Network, ModelArrays]:
    """A network and its arrays as the rules leave them; the same objects where none applies."""
    for rules in (concatenations.RULES, tail_copies.rules(repeat_input)):
        given = LayerGraph.of(network, arrays)
        graph = given
        for group in rules:
            graph = rewrite(graph, group, check_same)
        if graph is not given:
            network = replace(network, layers=tuple(graph.layers.values()))
            arrays = graph.arrays
    return network, arrays
