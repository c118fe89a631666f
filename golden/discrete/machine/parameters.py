"""Parameters of a training machine: slaves, widths of its numbers, sizes of its caches (C21)."""

from dataclasses import dataclass, field

from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.integers import make_fields_plain

ADDRESS_BITS = 16
"""Bits of an address and of a count in an instruction."""
MOST_TABLES = 7
"""Tables that the three bits of a kind can name."""
MOST_SLAVES = 64
PRODUCTS = ("multiplier", "shifter", "table")
DIVIDERS = ("none", "codes", "words")
CONVERTERS = ("shifting", "multiplying")
ROOTS = ("none", "table")
UNIT_CHOICES = {"products": PRODUCTS, "divider": DIVIDERS, "converter": CONVERTERS, "root": ROOTS}
"""Which units a machine may have, by parameter."""
MOST_INSTRUCTIONS = 1 << ADDRESS_BITS
"""Instructions of an instruction cache at most: a jump's target is an address."""


@dataclass(frozen=True, kw_only=True)
class MachineParameters:
    """Parameters of a machine, of the interpreter and of the generated hardware alike."""

    slaves: int = 8
    """Slaves, a power of two from 1 to 64: the leaves of the tree."""
    form: WordFormat = field(default_factory=lambda: WordFormat(18, 12))
    """Words of all caches; 1.0 and 2.0 are words."""
    code_bits: int = 3
    """Bits of the widest code: 1, 2 or 3."""
    tables: int = 3
    """Tables of codes, 1 to 7."""
    products: str = "multiplier"
    """How products are made: "multiplier", of two words, too; "shifter", each has a discrete operand, and no arithmetic
    unit has a multiplier; "table", those of slaves are of two codes, by a table in LUT RAM."""
    divider: str = "none"
    """Divisors of COMPUTE DIVIDE: "none", the machine lacks the instruction; "codes", codes, by shifts; "words", also
    words, bit by bit."""
    converter: str = "shifting"
    """How words become codes by chance: "shifting", one of the two codes around the word, by shifts; "multiplying", one
    of the two nearest codes, too, by a multiplier in each converter."""
    root: str = "none"
    """Hardware of COMPUTE INVERSE_ROOT: "none", the machine lacks the instruction; "table", a table of roots of 3
    bits."""
    instructions: int = 128
    """Instructions of the instruction cache."""
    neuron_words: int = 1024
    """Words of the master's neuron cache."""
    weight_words: int = 1024
    """Rows of a slave's weight cache, each a word and a code, and of its weight-gradient cache."""
    column_words: int = 32
    """Words of a slave's neuron cache: neurons of a layer whose weights are in one slave."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        most = 1 << ADDRESS_BITS
        for name, low, high in (
            ("slaves", 1, MOST_SLAVES),
            ("code_bits", 1, 3),
            ("tables", 1, MOST_TABLES),
            ("instructions", 2, MOST_INSTRUCTIONS),
            ("neuron_words", 2, most),
            ("weight_words", 2, most),
            ("column_words", 1, most),
        ):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"machine: {name} must be {low}..{high}, got {value!r}")
        for name, known in UNIT_CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"machine: {name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.slaves & (self.slaves - 1):
            raise ValueError(f"machine: slaves must be a power of two, got {self.slaves}")
        if self.weight_words < self.table_rows:
            raise ValueError(
                f"machine: weight_words must be >= {self.table_rows} for a table of products of {self.code_bits} bits, "
                f"got {self.weight_words}"
            )
        if self.form.fraction > self.form.bits - 3:
            raise ValueError(
                f"machine: fraction must be 0..{self.form.bits - 3} for {self.form.bits} bits, so that 2.0 is a word, "
                f"got {self.form.fraction}"
            )

    @property
    def multiplier(self) -> bool:
        """Whether two words can be multiplied."""
        return self.products == "multiplier"

    @property
    def table_rows(self) -> int:
        """Rows of the table of products in a slave, 0 where there is none."""
        return 1 << 2 * self.code_bits if self.products == "table" else 0

    def columns_each(self, columns: int) -> int:
        """Columns that a slave keeps of so many: column i is that of slave i mod slaves, there number i // slaves."""
        return -(-columns // self.slaves)
