"""Product of two operands, each a word or a code.  Golden twin: Configuration.product (golden/discrete/machine).


    left  --> value --+--> partial products --> their sum --+--> saturate --> product
    right --> value --'--> shift by a code's places --------'

Where an operand is a code the other one is shifted and the sign turned; the multiplier is for two words, and a machine
may lack it.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.hls_gen.design.training import ENTRY_BITS, LIMB_BITS, OPERAND_LATENCY, PRODUCT_LATENCY
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, const, nonzero, resize
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import CodedOperand, DecodedOperand, decoded, leave, shifted_magnitude
from .word import largest, magnitude_of, sign_of, word_of


def product_unit(library: Library, machine: MachineParameters) -> Block:
    """The module that multiplies: module ``product_unit``."""
    form = machine.form
    header = Header(
        __doc__,
        rate="a product a cycle",
        latency=f"{OPERAND_LATENCY} cycles to the values, {PRODUCT_LATENCY} to the product",
        parameters={"word_bits": form.bits, "fraction": form.fraction, "multiplier": int(machine.multiplier)},
    )
    b = Block("product_unit", header, reset=False)
    left = CodedOperand.ports(b, machine, "left", "the left operand")
    right = CodedOperand.ports(b, machine, "right", "the right operand")
    left_value = b.output("left_value", form.bits, means="word of the left operand")
    right_value = b.output("right_value", form.bits, means="word of the right operand")
    out = b.output_reg("product", form.bits, init=None, means="the product, a word")

    # # #

    x = decoded(b, machine, "x", left)
    y = decoded(b, machine, "y", right)
    left_value.assign(x.word)
    right_value.assign(y.word)
    shifted, shift_sign = _by_code(b, machine, x, y, right.coded)
    magnitude = shifted
    sign = shift_sign
    if machine.multiplier:
        multiplied, multiply_sign = _by_word(b, machine, x, y)
        coded = b.wire("coded", 1, any_of(left.coded, right.coded))
        magnitude = choose(coded, shifted, multiplied, form.bits - 1)
        sign = choose(coded, shift_sign, multiply_sign, 1)
    magnitude = b.wire("magnitude", form.bits - 1, magnitude)
    b.on(None, (out, word_of(b, "signed_product", b.wire("sign", 1, sign), magnitude)))
    return b


def _by_code(
    b: Block, machine: MachineParameters, x: DecodedOperand, y: DecodedOperand, right_coded: Signal
) -> tuple[Signal, Signal]:
    """(magnitude, sign) of a word times a code, two stages after the values."""
    b.comment("A code: the other operand is doubled and shifted by the entry's places.")
    w = machine.form.bits
    word = b.wire("shift_word", w, choose(right_coded, x.word, y.word, w))
    entry = b.reg("shift_entry", ENTRY_BITS, init=None)
    b.on(None, (entry, choose(right_coded, y.entry, x.entry, ENTRY_BITS)))
    sign = b.wire("shift_sign", 1, sign_of(word) ^ bits(entry, PLACES_BITS, 1))
    late_sign = delayed(b, sign, "shift_sign", 2)[-1]
    doubled = b.wire("doubled", w, Cat(magnitude_of(word), const(0, 1)))
    fine = shifted_magnitude(b, "shift", doubled, entry)
    most = largest(b, w - 1)
    return choose(bits(fine, w - 1, 1), most, bits(fine, 0, w - 1), w - 1), late_sign


def _by_word(b: Block, machine: MachineParameters, x: DecodedOperand, y: DecodedOperand) -> tuple[Signal, Signal]:
    """(magnitude, sign) of a word times a word, two stages after the values."""
    b.comment("Two words: partial products of what a DSP block takes, and their sum.")
    form = machine.form
    w = machine.form.bits - 1
    cuts = range(0, w, LIMB_BITS)
    terms = []
    for low in cuts:
        for other in cuts:
            limbs = [bits(v.word, at, min(LIMB_BITS, w - at)) for v, at in ((x, low), (y, other))]
            size = sum(min(LIMB_BITS, w - at) for at in (low, other))
            partial = b.reg(f"partial_{low}_{other}", size, init=None)
            b.on(None, (partial, resize(limbs[0], size) * resize(limbs[1], size)))
            term = Cat(partial, const(0, low + other)) if low + other else partial
            terms.append(resize(term, 2 * w))
    whole = b.reg("whole_product", 2 * w, init=None)
    while len(terms) > 1:
        terms = [a + c for a, c in zip(terms[::2], terms[1::2])] + terms[len(terms) & ~1 :]
    b.on(None, (whole, terms[0]))
    sign = b.wire("multiply_sign", 1, sign_of(x.word) ^ sign_of(y.word))
    late_sign = delayed(b, sign, "multiply_sign", 2)[-1]
    most = largest(b, w)
    if form.fraction:
        leave(b, "lost", bits(whole, 0, form.fraction))
    over = nonzero(bits(whole, form.fraction + w, w - form.fraction))
    return choose(over, most, bits(whole, form.fraction, w), w), late_sign
