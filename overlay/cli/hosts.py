"""Host files of the networks that a command gets: beside the model file of an imported network lies one that says
what the host computes."""

from collections.abc import Sequence

from bitloom.golden.host.file import load, path_of
from bitloom.golden.host.host import Host
from bitloom.golden.network import Model


def hosts_of(given: Sequence[str], models: Sequence[Model]) -> dict[str, Host]:
    """What the host does for imported networks, by their names.

    Parameters
    ----------
    given
        Names of networks of ours, or paths of model files.
    models
        The networks; more than ``given`` where the first name stands for several, as a reference design does.
    """
    hosts = {}
    for text, model in zip(reversed(given), reversed(models)):
        if text.endswith(".npz") and path_of(text).exists():
            hosts[model.network.name] = load(path_of(text), model)
    return hosts
