"""A training: layers of a perceptron, which of their tensors are discrete, and the rule of updates (C1, C13 to C18)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from bitloom.golden.discrete.converter import PAIRS
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.integers import make_fields_plain

from . import instruction as isa

ACTIVATIONS = {"none": None, "relu": (isa.RELU, isa.RELU_SLOPE), "clip": (isa.CLIP, isa.CLIP_SLOPE)}
"""Activation and slope of each name; clip is the hard tanh, which clips to [-1, 1]."""
MOST_PLACES = 31
"""Largest k of a constant 2^-k."""
MOMENT_PLACES = 3
"""k of the share 2^-k by which running moments of sums move with each batch."""
MEAN_PLACES = 8
"""k of the share 2^-k by which a running mean moves with each sample."""


@dataclass(frozen=True)
class TensorKind:
    """How a tensor is kept: continuous, or as codes of a table."""

    table: int = 0
    """0: continuous words; else the number of the table."""
    chance: bool = False
    """It is converted by chance, not to the nearest."""
    pair: str = "bracket"
    """By chance: "bracket", between the codes around the word; "nearest", between the two nearest."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if self.pair not in PAIRS:
            raise ValueError(f"kind: pair must be one of {', '.join(PAIRS)}, got {self.pair!r}")
        if self.chance and not self.table:
            raise ValueError("kind: chance must be False for continuous words, table 0, got True")


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Square windows of an image, which the neurons of a layer see one after another: a convolution without padding.

    A vector has the image's pixels row after row, the channels of a pixel side by side; so has a window, and so have
    the results: the neurons are the channels.
    """

    height: int
    width: int
    channels: int = 1
    """height, width, channels: of the image."""
    size: int = 3
    """Rows and columns of a window."""
    stride: int = 1
    """From a window to the next one, in rows and in columns."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for name in ("height", "width", "channels", "size", "stride"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"windows: {name} must be 1 or more, got {value!r}")
        if self.size > min(self.height, self.width):
            raise ValueError(f"windows: size must be 1..{min(self.height, self.width)}, got {self.size}")

    @property
    def pixels(self) -> int:
        """Elements of the image."""
        return self.height * self.width * self.channels

    @property
    def inputs(self) -> int:
        """Elements of a window."""
        return self.size * self.run

    @property
    def run(self) -> int:
        """Elements of a window that stand side by side in the image: those of a row."""
        return self.size * self.channels

    @property
    def runs(self) -> tuple[tuple[int, ...], ...]:
        """Of each window, row after row of windows, where its runs begin in the image."""
        row = self.width * self.channels
        return tuple(
            tuple((top + k) * row + left * self.channels for k in range(self.size))
            for top in range(0, self.height - self.size + 1, self.stride)
            for left in range(0, self.width - self.size + 1, self.stride)
        )


@dataclass(frozen=True, kw_only=True)
class DenseLayer:
    """One layer of a perceptron as the machine trains it, or of a convolutional network."""

    inputs: int
    outputs: int
    """inputs, outputs: of the neurons."""
    windows: Windows | None = None
    """Windows that the neurons see one after another; None: they see all of the layer's input at once."""
    activation: str = "relu"
    """"relu", "clip" or "none"."""
    weights: TensorKind = field(default_factory=TensorKind)
    master: bool = False
    """Discrete weights have continuous master weights."""
    forward_table: int = 0
    backward_table: int = 0
    """forward_table, backward_table: numbers of the tables by which codes of weights are multiplied forwards and
    backwards, with as many bits as that of ``weights``, by which weights are converted; 0 is the same table."""
    normalised: bool = False
    """Sums are normalised over the batch, and times a gain; then the biases are added (C20)."""
    weight_gradients: TensorKind = field(default_factory=TensorKind)
    """Of dW of each sample."""
    slopes: TensorKind = field(default_factory=TensorKind)
    """Of the activation's derivative f', which is 1 or 0 before it is converted."""
    centred: bool = False
    """Results are less their running mean, which follows them while the layer learns."""
    results: TensorKind = field(default_factory=TensorKind)
    """Of what leaves the activation, centred or not: the inputs of the next layer."""
    errors: TensorKind = field(default_factory=TensorKind)
    """Of g, the derivatives by the sums."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"layer: activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        for name in ("inputs", "outputs"):
            if getattr(self, name) < 1:
                raise ValueError(f"layer: {name} must be 1 or more, got {getattr(self, name)}")
        if self.windows is not None and self.windows.inputs != self.inputs:
            raise ValueError(f"layer: inputs must be those of a window, {self.windows.inputs}, got {self.inputs}")
        if self.slopes.table and self.activation == "none":
            raise ValueError(f"layer: slopes must be continuous without an activation, got table {self.slopes.table}")

    @property
    def views(self) -> int:
        """How often the neurons see a part of a sample: once for each window."""
        return 1 if self.windows is None else len(self.windows.runs)

    @property
    def vector_inputs(self) -> int:
        """Elements of the layer's input."""
        return self.inputs if self.windows is None else self.windows.pixels

    @property
    def vector_outputs(self) -> int:
        """Elements of the layer's results: those of all views."""
        return self.views * self.outputs

    @property
    def continuous(self) -> bool:
        """Whether the machine keeps words of the weights."""
        return self.weights.table == 0 or self.master


@dataclass(frozen=True, kw_only=True)
class MovingRule:
    """How parameters move; each kind of rule says which constants it has."""

    rate_places: int = 5
    """k of the learning rate 2^-k of the weights."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for constant in fields(self):
            value = getattr(self, constant.name)
            if not constant.name.endswith("_places") or value is constant.default is None:
                continue
            if type(value) is not int or not 0 <= value <= MOST_PLACES:
                raise ValueError(f"update rule: {constant.name} must be 0..{MOST_PLACES}, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class SourceRule(MovingRule):
    """After each sample w <- w - 2^-rate (dw + 2^-mu dw'), then dw' <- dw; biases alike (C17)."""

    mu_places: int | None = None
    """k of mu = 2^-k, None for mu = 0."""

    @property
    def remembers(self) -> bool:
        """Whether the gradients of a sample are needed after it."""
        return self.mu_places is not None


@dataclass(frozen=True, kw_only=True)
class VelocityRule(MovingRule):
    """With each sample v <- v + dw; after each batch w <- w - 2^-rate v, then v <- v - 2^-decay v, or 0 without decay.

    Biases have a rate of their own, and sums of gradients that begin each batch at 0.
    """

    bias_places: int = 5
    """k of the learning rate 2^-k of the biases."""
    decay_places: int | None = None
    """k of the share 2^-k of a velocity that a batch's end takes away; None takes all of it."""
    batch: int = 32
    """Samples of a batch, 1 or more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.batch) is not int or self.batch < 1:
            raise ValueError(f"update rule: batch must be 1 or more, got {self.batch!r}")

    @property
    def remembers(self) -> bool:
        """Whether the gradients of a sample are needed after it."""
        return True


@dataclass(frozen=True, kw_only=True)
class Training:
    """The layers that are trained, and the rule by which they are."""

    layers: tuple[DenseLayer, ...]
    """The outputs of each are the inputs of the next."""
    rule: SourceRule | VelocityRule = field(default_factory=SourceRule)
    tables: Mapping[int, tuple[CodeTable, int]] = field(default_factory=dict)
    """mapping of int to (CodeTable, int): table and zone by number."""
    inputs: TensorKind = field(default_factory=TensorKind)
    """Of the first layer's inputs; codes are sent as codes."""
    seed: int = 1
    """State of the generator, 1 to 2^32 - 1."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if not self.layers:
            raise ValueError("training: layers must be one or more, got none")
        for before, after in zip(self.layers, self.layers[1:]):
            if before.vector_outputs != after.vector_inputs:
                raise ValueError(
                    f"training: a layer must have as many inputs as the one before has outputs, "
                    f"{before.vector_outputs}, got {after.vector_inputs}"
                )
        if self.windowed and (self.normalised or isinstance(self.rule, SourceRule)):
            raise ValueError("training: layers with windows need a rule of velocities, and that no layer is normalised")
        if self.normalised and (self.batch < 2 or self.batch & (self.batch - 1)):
            raise ValueError(
                f"training: batch must be a power of two from 2 on where layers are normalised, got {self.batch}"
            )

    @property
    def normalised(self) -> bool:
        """Whether a layer is normalised over the batch."""
        return any(layer.normalised for layer in self.layers)

    @property
    def windowed(self) -> bool:
        """Whether a layer sees windows."""
        return any(layer.windows is not None for layer in self.layers)

    @property
    def stepwise(self) -> bool:
        """Whether each step is made for all samples side by side, and for all windows, before the next step."""
        return self.normalised or self.windowed

    @property
    def side_by_side(self) -> int:
        """Samples that go through the layers side by side: a batch where a layer is normalised over it, else one."""
        return self.batch if self.normalised else 1

    def kind_of_inputs(self, number: int) -> int:
        """Kind of the inputs of layer ``number``, as an instruction says it."""
        return self.layers[number - 1].results.table if number else self.inputs.table

    @property
    def batch(self) -> int:
        """Samples after which parameters move."""
        return 1 if isinstance(self.rule, SourceRule) else self.rule.batch

    @property
    def batch_places(self) -> int:
        """k of a batch of 2^k samples."""
        return self.batch.bit_length() - 1

    def batches(self, samples: int) -> int:
        """How many batches ``samples`` are; ValueError if the last one is not whole."""
        if samples % self.batch:
            raise ValueError(f"training: samples must be a multiple of the batch, {self.batch}, got {samples}")
        return samples // self.batch

    @property
    def multiplications(self) -> int:
        """Products with a weight or a weight's gradient that a sample takes: forward, backward, dw."""
        sizes = [layer.inputs * layer.vector_outputs for layer in self.layers]
        return 3 * sum(sizes) - sizes[0]
