"""Hosts of networks with one output, the scores, as tests make and change them."""

from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden.host.host import Host, HostOutput, OutputPart
from bitloom.golden.host.links import HostLinks


def scores(
    chain: HostLinks, order: np.ndarray, closing: tuple[str, ...] = (), classes: int = 0, apart: int = 1
) -> tuple[HostOutput, ...]:
    """One output of one map: what makes the file's numbers, their places in the map, what the file ends in, and over
    how many scores: by default all."""
    part = OutputPart(first=0, size=order.size, chain=chain)
    return (
        HostOutput(
            name="scores",
            shape=(order.size,),
            parts=(part,),
            order=order,
            closing=closing,
            classes=classes or order.size,
            apart=apart,
        ),
    )


def with_scores(host: Host, **changes: Any) -> Host:
    """The host with another chain, order or closing of its scores."""
    output = host.only
    given = {"chain": output.parts[0].chain, "order": output.order, "closing": output.closing, **changes}
    return replace(host, outputs=scores(**given))
