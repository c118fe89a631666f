"""Graphs as real networks have them, small: what no NPU takes as it is written."""

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.pool import AvgPool, MaxPool

from .test_residual import act, add, conv, residual


def concat(name, *reads):
    return (Concat(name=name, inputs=reads),)


def pool(name, reads, side=2, kind=MaxPool):
    return (kind(name=name, kernel=(side, side), stride=(side, side), inputs=(reads,)),)


def beside(name, reads):
    """A pool that keeps the map's size."""
    return (MaxPool(name=name, kernel=(3, 3), stride=(1, 1), padding=(1, 1, 1, 1), inputs=(reads,)),)


def inception(n, reads):
    """Four branches of one map: 1 x 1, 1 x 1 and 3 x 3, 1 x 1 and 5 x 5, a pool and 1 x 1."""
    return (
        conv(f"conv_{n}1", reads, 3), conv(f"conv_{n}2", reads, 5), conv(f"conv_{n}3", f"act_{n}2", 6, 3),
        conv(f"conv_{n}4", reads, 2), conv(f"conv_{n}5", f"act_{n}4", 4, 5), beside(f"pool_{n}6", reads),
        conv(f"conv_{n}7", f"pool_{n}6", 3), concat(f"concat_{n}", *(f"act_{n}{k}" for k in (1, 3, 5, 7))),
    )  # fmt: skip


def unet(join):
    """Three ways, each inside the one before."""
    there = (conv("conv_1", INPUT), *(conv(f"conv_{k}", f"act_{k - 1}") for k in range(2, 6)))
    return (*there, join("join_6", "act_3", "act_5"), conv("conv_7", "join_6"), join("join_8", "act_2", "act_7"),
            conv("conv_9", "join_8"), join("join_10", "act_1", "act_9"), conv("conv_11", "join_10"))  # fmt: skip


FIRST = (conv("conv_1", INPUT), conv("conv_2", "act_1", kernel=3), conv("conv_3", "act_2"))
GRAPHS = {
    "inception": residual(conv("conv_0", INPUT, 6), *inception(1, "act_0"), *inception(2, "concat_1"),
                          conv("conv_9", "concat_2")),
    "densenet": residual(
        conv("conv_0", INPUT), conv("conv_1", "act_0"), concat("concat_1", "act_0", "act_1"),
        conv("conv_2", "concat_1"), concat("concat_2", "act_0", "act_1", "act_2"), conv("conv_3", "concat_2"),
        concat("concat_3", "act_0", "act_1", "act_2", "act_3"), conv("conv_4", "concat_3")),
    "unet": residual(*unet(concat)),
    "unet that adds": residual(*unet(add)),
    "a long way around two short ones": residual(
        *FIRST, add("add_4", "act_3", "act_2"), conv("conv_5", "add_4"), add("add_6", "act_5", "add_4"),
        conv("conv_7", "add_6"), add("add_8", "act_7", "act_1"), conv("conv_9", "add_8")),
    "a map added twice": residual(*FIRST, add("add_4", "act_3", "act_1"), conv("conv_5", "add_4"),
                                  add("add_6", "act_5", "act_1"), conv("conv_7", "add_6")),
    "an addition of additions": residual(
        *FIRST, add("add_4", "act_3", "act_1"), conv("conv_5", "act_2"), add("add_6", "act_5", "act_2"),
        add("add_7", "add_4", "add_6"), conv("conv_8", "add_7")),
    "an addition of pools": residual(
        conv("conv_1", INPUT), pool("pool_2", "act_1"), conv("conv_3", "pool_2"), pool("pool_4", "act_3", 1),
        add("add_5", "pool_4", "pool_2"), conv("conv_6", "add_5")),
    "two pools of a map": residual(conv("conv_1", INPUT), pool("pool_2", "act_1"), conv("conv_3", "pool_2"),
                                   pool("pool_4", "act_1", kind=AvgPool), conv("conv_5", "pool_4"),
                                   add("add_6", "act_3", "act_5")),
    "a pool of a pool": residual(conv("conv_1", INPUT), pool("pool_2", "act_1"), pool("pool_3", "pool_2", kind=AvgPool),
                                 conv("conv_4", "pool_3")),
    "the input added": residual(conv("conv_1", INPUT), conv("conv_2", "act_1"), add("add_3", "act_2", INPUT),
                                conv("conv_4", "add_3")),
    "the input read twice": residual(
        conv("conv_1", INPUT), conv("conv_2", INPUT, 4, 3), add("add_3", "act_1", "act_2")),
    "the input concatenated": residual(
        conv("conv_1", INPUT), concat("concat_2", "act_1", INPUT), conv("conv_3", "concat_2")),
    "a pool first": residual(pool("pool_1", INPUT), conv("conv_2", "pool_1")),
    "a map beside itself": residual(
        conv("conv_1", INPUT), concat("concat_2", "act_1", "act_1"), conv("conv_3", "concat_2")),
    "a map added to itself": residual(conv("conv_1", INPUT), add("add_2", "act_1", "act_1"), conv("conv_3", "add_2")),
    "a map requantised twice": residual(conv("conv_1", INPUT), act("act_2", "act_1"), conv("conv_3", "act_2"),
                                        conv("conv_4", "act_1"), add("add_5", "act_3", "act_4")),
    "concatenated, then added to": residual(
        conv("conv_1", INPUT), conv("conv_2", "act_1", 8), conv("conv_3", "act_1", 4, 3),
        concat("concat_4", "act_3", "act_1"), conv("conv_5", "concat_4", 8), add("add_6", "act_5", "act_2"),
        conv("conv_7", "add_6")),
}  # fmt: skip
