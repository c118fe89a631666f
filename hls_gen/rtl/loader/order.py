"""Order: by what the loader notices packets that were lost, doubled, moved or cut (hls_gen/design/signature.py).

    LOAD: check word, rows --> signature --> of all LOADs since reset; a FRAME says which one it is for
    FRAME, WEIGHTS --> number --> how many came since the last LOAD; each says its own
    WEIGHTS --> layer --> whose weights come next; each says whose they are

All three stand still while a header is judged: what changes them comes before the header, or lets the packet begin.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import signature as rule
from bitloom.hls_gen.design.headers import NUMBER_BITS
from bitloom.hls_gen.design.widths import LAYER_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, bits, choose, eq, resize, side_by_side

from .header import HeaderWords
from .network_row import NetworkRow
from .state import LoaderContext


@dataclass(frozen=True)
class Order:
    """The loader's count of packets: which ones have come since the last reset or LOAD, and which one comes next."""

    signature: Signal
    """Register: signature of the LOAD packets since the last reset."""
    number: Signal
    """Register: FRAME and WEIGHTS packets since the last LOAD."""
    layer: Signal | None
    """Register: number, among the streamed layers, of the one whose weights come next. None without such layers."""

    @classmethod
    def make(cls, c: LoaderContext) -> "Order":
        """Registers, of which the signature is an output."""
        b = c.b
        streamed = c.design.npus[0].loader.stream_weights
        layer = ", layer of the next weights" * streamed
        b.comment(f"Order: signature of what was loaded, number of the next packet{layer}.")
        first = b.localparam("FIRST_SIGNATURE", rule.START, rule.BITS, base=16)
        return cls(
            b.output_reg("signature", rule.BITS, init=first),
            b.reg("next_number", NUMBER_BITS),
            b.reg("next_layer", LAYER_BITS) if streamed else None,
        )

    def in_turn(self, b: Block, header: HeaderWords, network: NetworkRow, is_weights: Signal | None) -> Signal:
        """Whether the FRAME or WEIGHTS packet at hand is the one that comes next."""
        numbered = eq(header.fields["NUMBER"], self.number)
        if self.layer is None or is_weights is None:
            return numbered
        exists = resize(self.layer, LAYER_BITS + 1) < network.fields["streamed_layers"]
        layer = b.wire("layer_in_turn", 1, eq(header.fields["LAYER"], self.layer) & exists)
        return numbered & any_of(~is_weights, layer)

    def count(self, b: Block, accept_load: Signal, accepts: list[Signal]) -> None:
        """Counts packets that begin: a LOAD starts the count anew, ``accepts`` are those that are counted."""
        b.on(any_of(*accepts), (self.number, add(self.number, 1, NUMBER_BITS)))
        b.on(accept_load, (self.number, 0))

    def count_layers(self, b: Block, accept_load: Signal, whole: Signal, network: NetworkRow) -> None:
        """Goes on to the next layer where one is ``whole``; after the network's last one to its first."""
        after = b.wire("layer_after", LAYER_BITS + 1, add(self.layer, 1, LAYER_BITS + 1))
        wraps = eq(after, network.fields["streamed_layers"])
        b.on(whole, (self.layer, choose(wraps, 0, bits(after, 0, LAYER_BITS), LAYER_BITS)))
        b.on(accept_load, (self.layer, 0))

    def sign(self, c: LoaderContext, check: Signal, loaded: Signal, accept_load: Signal) -> None:
        """Takes a LOAD's ``check`` word as it begins, then its words as they are ``loaded``, into the signature."""
        b = c.b
        b.comment("The signature with one more word.")
        after = _step(b, "signature_times_x", self.signature)
        b.on(accept_load, (self.signature, after ^ check))
        for k, low in enumerate(range(0, c.design.stream_bits, 32)):  # 32 bits at a time, low half first
            if k:
                after = _step(b, "signature_of_half_times_x", after)
            after = b.wire(f"signature_{k}", rule.BITS, after ^ bits(c.data, low, 32))
        b.on(loaded, (self.signature, after))


def _step(b: Block, name: str, value: Signal) -> Signal:
    """x * ``value``, a variable, in the field of signatures."""
    top = bits(value, rule.BITS - 1, 1)
    lanes = [top]  # bit 0 is one of the taps
    for k in range(1, rule.BITS):
        below = bits(value, k - 1, 1)
        lanes.append(below ^ top if k in rule.TAPS else below)
    return b.wire(name, rule.BITS, side_by_side(lanes))
