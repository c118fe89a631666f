"""Residual networks of tests, as text, and graphs as real networks have them, small: what no NPU takes as it is
written."""

from functools import partial

from bitloom.golden.encoding import signed
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from tests import graph_text
from tests.graph_text import network_of


def conv(name, reads, channels=4, kernel=1, stride=1, kind=Conv):
    """A convolution and its requantisation, which is called after it."""
    window = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "padding": (kernel // 2,) * 4}
    act = Requantise(name=name.replace("conv", "act"), encoding=signed(8), inputs=(name,))
    return kind(name=name, out_channels=channels, weight=signed(8), inputs=(reads,), **window), act


def sums(name, reads, channels=4):
    return conv(name, reads, channels)[:1]


def act(name, reads):
    return Requantise(name=name, encoding=signed(8), inputs=(reads,))


def add(name, *reads):
    return Add(name=name, encoding=signed(8), inputs=reads)


def concat(name, *reads):
    return Concat(name=name, inputs=reads)


def pool(name, reads, side=2, kind=MaxPool):
    return kind(name=name, kernel=(side, side), stride=(side, side), inputs=(reads,))


def beside(name, reads):
    """A pool that keeps the map's size."""
    return MaxPool(name=name, kernel=(3, 3), stride=(1, 1), padding=(1, 1, 1, 1), inputs=(reads,))


BUILDERS = {builder.__name__: builder for builder in (conv, sums, act, add, concat, pool, beside)}
BUILDERS |= {"average": partial(pool, kind=AvgPool), "depthwise": partial(conv, kind=DepthwiseConv)}
BUILDERS["dense"] = graph_text.BUILDERS["dense"]


def residual(*parts, source="6x5x4 s8", name="net"):
    """A network of layers of integers, as objects or as text."""
    return network_of(source, *parts, name=name, builders=BUILDERS)


BLOCK = "conv_1 @input, conv_2 act_1 kernel=3, conv_3 act_2"
SHORTCUT = "conv_1 @input, conv_2 act_1 kernel=3 stride=2, conv_3 act_2"


def two_ways(ways, stride=1):
    """A residual network whose two ``ways`` are added, one of which begins with a convolution of this stride."""
    return residual(f"{ways}, conv_5 act_1 stride={stride}, add_6 act_5 act_3, conv_7 add_6 12 3")


def inception(n, reads):
    """Four branches of one map: 1 x 1, 1 x 1 and 3 x 3, 1 x 1 and 5 x 5, a pool and 1 x 1."""
    branches = f"conv_{n}1 {reads} 3, conv_{n}2 {reads} 5, conv_{n}3 act_{n}2 6 3, conv_{n}4 {reads} 2"
    more = f"conv_{n}5 act_{n}4 4 5, beside pool_{n}6 {reads}, conv_{n}7 pool_{n}6 3"
    return f"{branches}, {more}, concat_{n} act_{n}1 act_{n}3 act_{n}5 act_{n}7"


def unet(join):
    """Three ways, each inside the one before."""
    there = "conv_1 @input, conv_2 act_1, conv_3 act_2, conv_4 act_3, conv_5 act_4"
    back = f"{join} join_6 act_3 act_5, conv_7 join_6, {join} join_8 act_2 act_7, conv_9 join_8"
    return f"{there}, {back}, {join} join_10 act_1 act_9, conv_11 join_10"


DENSE = {
    2: "conv_0 @input, conv_1 act_0, concat_1 act_0 act_1, conv_2 concat_1",
    3: "concat_2 act_0 act_1 act_2, conv_3 concat_2, concat_3 act_0 act_1 act_2 act_3, conv_4 concat_3",
}
AROUND = "add_4 act_3 act_2, conv_5 add_4, add_6 act_5 add_4, conv_7 add_6, add_8 act_7 act_1, conv_9 add_8"
ADDED = "add_4 act_3 act_1, conv_5 act_2, add_6 act_5 act_2, add_7 add_4 add_6, conv_8 add_7"
POOLS = "conv_1 @input, pool_2 act_1, conv_3 pool_2, pool_4 act_3 1, add_5 pool_4 pool_2, conv_6 add_5"
TWO_POOLS = "conv_1 @input, pool_2 act_1, conv_3 pool_2, average pool_4 act_1, conv_5 pool_4, add_6 act_3 act_5"
THEN_ADDED = "concat_4 act_3 act_1, conv_5 concat_4 8, add_6 act_5 act_2, conv_7 add_6"
TEXTS = {
    "inception": f"conv_0 @input 6, {inception(1, 'act_0')}, {inception(2, 'concat_1')}, conv_9 concat_2",
    "densenet": f"{DENSE[2]}, {DENSE[3]}",
    "unet": unet("concat"),
    "unet that adds": unet("add"),
    "a long way around two short ones": f"{BLOCK}, {AROUND}",
    "a map added twice": f"{BLOCK}, add_4 act_3 act_1, conv_5 add_4, add_6 act_5 act_1, conv_7 add_6",
    "an addition of additions": f"{BLOCK}, {ADDED}",
    "an addition of pools": POOLS,
    "two pools of a map": TWO_POOLS,
    "a pool of a pool": "conv_1 @input, pool_2 act_1, average pool_3 pool_2, conv_4 pool_3",
    "the input added": "conv_1 @input, conv_2 act_1, add_3 act_2 @input, conv_4 add_3",
    "the input read twice": "conv_1 @input, conv_2 @input 4 3, add_3 act_1 act_2",
    "the input concatenated": "conv_1 @input, concat_2 act_1 @input, conv_3 concat_2",
    "a pool first": "pool_1 @input, conv_2 pool_1",
    "a map beside itself": "conv_1 @input, concat_2 act_1 act_1, conv_3 concat_2",
    "a map added to itself": "conv_1 @input, add_2 act_1 act_1, conv_3 add_2",
    "a map requantised twice": "conv_1 @input, act_2 act_1, conv_3 act_2, conv_4 act_1, add_5 act_3 act_4",
    "concatenated, then added to": f"conv_1 @input, conv_2 act_1 8, conv_3 act_1 4 3, {THEN_ADDED}",
}
GRAPHS = {name: residual(text) for name, text in TEXTS.items()}
