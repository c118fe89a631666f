"""What a network asks of the compiler: estimated first, against bitloom.golden.limits.

Orders and tables are made tap by tap, and a frame is made bit by bit. So these two say how much memory and time it
takes: about 200 bytes and 20 us a tap in map order pull, where there are tables.
"""

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.limits import FRAME_BITS, TAPS
from bitloom.golden.network import Network


def check_network(network: Network) -> None:
    """Refuse a network whose maps are too large.

    Raises
    ------
    ValueError
        More than ``FRAME_BITS`` bits in an image, or a layer with more than ``TAPS`` taps in all its windows.
    """
    FRAME_BITS.check(f"{network.name}: input", network.input.size * network.input.encoding.bits)
    for layer in network.layers:
        if isinstance(layer, (Weighted, Pool)):
            source = network.sources(layer)[0]
            window = layer.window(source) if isinstance(layer, Weighted) else layer.window
            TAPS.check(f"{network.name}: {layer.name}", network.maps[layer.name].positions * window.taps)
