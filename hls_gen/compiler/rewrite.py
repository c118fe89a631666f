"""What a network is rewritten to, exactly, before it is cut into parts (hls_gen/compiler/parts.py): concatenations as
an NPU takes them, and copies of maps where a layer without weights has nothing that it could follow."""

from bitloom.golden.network import Model, Network

from .concatenations import Concatenations
from .tail_copies import TailCopies


def rewritten(model: Model) -> Model:
    """Rewrite a model so that an engine finds a part for each layer, if it can.

    Parameters
    ----------
    model : Model

    Returns
    -------
    Model
        With the same output; the model itself where there is nothing to rewrite.
    """
    for kind in (Concatenations, TailCopies):
        rewriting = kind(model.network)
        rewriting.place()
        model = rewriting.model(model)
    return model


def rewritten_network(network: Network) -> Network:
    """The network of the model that `rewritten` gives, whatever its arrays are."""
    for kind in (Concatenations, TailCopies):
        rewriting = kind(network)
        rewriting.place()
        network = rewriting.rewritten()
    return network
