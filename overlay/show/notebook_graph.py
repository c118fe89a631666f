"""The picture of a network's graph in a notebook."""

from typing import TYPE_CHECKING

from bitloom.golden.network import Network
from bitloom.overlay.show.report.graph import picture

if TYPE_CHECKING:
    from IPython.display import HTML

STYLE = """<style>
.graph text { fill: currentColor; font: 13px sans-serif; }
.graph .name { font-weight: 650; }
.graph .end { text-anchor: end; }
.graph .small { font-size: 12px; }
.graph .npu { fill: none; stroke: currentColor; }
.graph .edge { fill: none; stroke: currentColor; stroke-width: 1.4; }
.graph .head { fill: currentColor; }
</style>"""
"""In the colour of the notebook's own text, be it dark or light."""


def graph(network: Network) -> "HTML":
    """A box for each layer and an arrow for each map, as a report has them (overlay/show/report/graph.py).

    Parameters
    ----------
    network
        The network.

    Returns
    -------
    IPython.display.HTML
        Value that a cell shows which ends with it.
    """
    from IPython.display import HTML

    return HTML(STYLE + picture(network))
