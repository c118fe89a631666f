"""Meanings of the ports through which modules of the training machine tell each other what to do.

The controller passes fields of the instruction on to the master; the master gives the slaves settings and beats.
"""

from bitloom.golden.discrete.machine.parameters import MachineParameters

BY_CHANCE = {"shifting": ("chance_d", "chance_w"), "multiplying": ("chance_d", "chance_w", "pair_d", "pair_w")}
"""Fields of an instruction that say how the converters of a machine go by chance."""


def passed_on(machine: MachineParameters) -> tuple[str, ...]:
    """Fields of an instruction that units look at themselves."""
    kinds = ("kind_a", "kind_b", "kind_w", "kind_d")
    return (*kinds, *BY_CHANCE[machine.converter], "master", "last", "function", "a", "b", "d", "w", "rows")


SETTINGS = {
    "left_coded": "the left factor of products is a code",
    "left_entries": "entries of the left factor's table",
    "left_mask": "bits of a code of the left factor",
    "right_coded": "the right factor of products is a code",
    "right_entries": "entries of the right factor's table",
    "right_mask": "bits of a code of the right factor",
    "w_coded": "weights are codes",
    "w_entries": "entries of the weights' table",
    "w_mask": "bits of a weight's code, and the last rank",
    "w_thresholds": "thresholds of the weights' converter",
    "w_ranked": "entries of the weights' table in rising order",
    "w_order": "codes of the weights in rising order",
    "w_chance": "weights are converted by chance",
    "w_pair": "by chance, of the two nearest codes",
    "w_wide": "zone of the weights' table is 2",
    "d_coded": "weight gradients are converted",
    "d_entries": "entries of the weight gradients' table",
    "d_mask": "bits of a weight gradient's code, and the last rank",
    "d_thresholds": "thresholds of the weight gradients' converter",
    "d_ranked": "entries of the weight gradients' table in rising order",
    "d_order": "codes of the weight gradients in rising order",
    "d_chance": "weight gradients are converted by chance",
    "d_pair": "by chance, of the two nearest codes",
    "d_wide": "zone of the weight gradients' table is 2",
    "w_zone": "zone that new weights are clipped to, 0 for none",
    "master": "codes of weights have master weights",
    "accumulates": "LEARN is ACCUMULATE: dw is added to the velocity, weights stay",
    "applies": "LEARN is APPLY: weights move by the velocity; neither: it is UPDATE",
    "rate": "places of the learning rate",
    "mu": "places by which a word of the cache of gradients is shifted",
    "mu_on": "that word is added, or for APPLY subtracted",
    "cache": "what is loaded or stored: 1 words, 2 codes, 3 gradients",
}
"""Meaning of each setting."""
BEAT = {
    "kind": "beat: what is to be done, 0 for nothing",
    "row": "beat: row of the slaves' caches",
    "column": "beat: number of the column in its slave",
    "slave": "beat: whose turn it is, or the last slave that takes part",
    "first": "beat: the first of a sum",
    "last": "beat: the last of a sum",
    "data": "beat: an operand, or what is loaded",
    "draw_d": "beat: number of the generator for the weight gradients",
    "draw_w": "beat: number of the generator for the weights",
}
"""Meaning of each part of a beat."""
