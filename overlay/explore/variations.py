"""Variations of a candidate: other map orders, counters for tables, dataflow input_stationary, streamed weights.

The foldings stay. Each variation differs in one thing; the best are varied again, so that several come together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bitloom.hls_gen.compiler.ways import with_equal_steps
from bitloom.hls_gen.design.array import MOST_ACCUMULATORS
from bitloom.hls_gen.design.copy_names import is_copy

from .candidate import Candidate
from .one_npu import NpuChoices


@dataclass(frozen=True)
class MapSetting:
    """The choices that a candidate's NPUs have in common beside their foldings."""

    map_order: str = "pull"
    """"pull" or "raster"."""
    counters: bool = False
    """Whether NPUs have counters for raster order, which then needs no tables."""
    streamed: bool = False
    """Whether weights come down the stream with every frame."""

    @property
    def words(self) -> str:
        """The setting in a few words."""
        return self.map_order + ", counters" * self.counters + ", streamed weights" * self.streamed


SETTINGS = (MapSetting(), MapSetting("raster"), MapSetting("raster", counters=True))
"""All settings with weights that stay on the device; each is there with streamed weights, too."""
IN = "input_stationary"
LEAST_GAIN = 0.01
"""Share of a layer's cycles that dataflow input_stationary must gain to be worth a look."""


def setting_of(candidate: Candidate) -> MapSetting:
    """The setting of a candidate."""
    return MapSetting(
        candidate.map_order, any(npu.sequencer.raster for npu in candidate.npus), candidate.stream_weights
    )


def in_settings(candidate: Candidate, choices: Mapping[MapSetting, NpuChoices]) -> Iterator[Candidate]:
    """The candidate in the other settings, its weights streamed if they are; and where an NPU has several layers, in
    its own setting with streamed weights: fewer rows of kernels, for perhaps more cycles.

    Parameters
    ----------
    candidate
        Candidate that is varied.
    choices
        Choices for an NPU, by setting: those that are tried.

    Yields
    ------
    Candidate
        With NPUs whose memories are sized anew; that it makes a design isn't known yet.
    """
    here = setting_of(candidate)
    for setting, choices_there in choices.items():
        if setting != here and setting.streamed == here.streamed:
            yield _resized(candidate, setting, choices_there)
    coming = replace(here, streamed=True)
    if coming in choices and coming != here and len(candidate.mapping) > len(candidate.npus):
        yield _resized(candidate, coming, choices[coming])


def _resized(candidate: Candidate, setting: MapSetting, choices: NpuChoices) -> Candidate:
    """The candidate in a setting, with the memories that it needs there."""
    npus = []
    for n, npu in enumerate(candidate.npus):
        other = npu.unchecked(raster=setting.counters, stream_weights=setting.streamed)
        npus.append(choices.sized(choices.indices_on(n, candidate.mapping), other))
    return replace(candidate, npus=with_equal_steps(npus), map_order=setting.map_order)


def dataflows(candidate: Candidate, choices: Mapping[MapSetting, NpuChoices]) -> Iterator[Candidate]:
    """The candidate with input_stationary layers on an NPU, and with all such layers of all NPUs.

    These are layers that take fewer cycles so: their results need not wait for each other in the registers of a PE.

    Parameters
    ----------
    candidate
        Candidate that is varied.
    choices
        Choices for an NPU, by setting: that of the candidate is among them.
    """
    here = choices[setting_of(candidate)]
    together = candidate
    for n, npu in enumerate(candidate.npus):
        gains = {}
        layers = [here.layers[i] for i in here.indices_on(n, candidate.mapping)]
        for layer in (layer for layer in layers if not is_copy(layer.name)):
            count = layer.shared_accumulators(npu)
            if layer.groups(npu) > 1 and count <= MOST_ACCUMULATORS and layer.name not in candidate.dataflow:
                before = layer.cycles(npu, "output_stationary")
                after = layer.cycles(npu.unchecked(accumulators=count), IN)
                if after < (1 - LEAST_GAIN) * before:
                    gains[layer.name] = count
        if gains:
            with_several = npu.changed(accumulators=max(npu.array.accumulators, *gains.values()))
            yield candidate.with_npu(n, with_several, {**candidate.dataflow, **dict.fromkeys(gains, IN)})
            together = together.with_npu(n, with_several, {**together.dataflow, **dict.fromkeys(gains, IN)})
    if len(together.dataflow) > len(candidate.dataflow) and len(candidate.npus) > 1:
        yield together
