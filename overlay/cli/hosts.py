"""What the host does around the networks that a command is given: an imported one has a file that says it, beside the
model's."""

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
    found = {}
    for text, model in zip(reversed(given), reversed(models)):
        if text.endswith(".npz") and path_of(text).exists():
            found[model.network.name] = load(path_of(text), model)
    return found
