"""The issuer's side of one memory for kernels and features (hls_gen/rtl/array/operand_memory.py).

word at work is there --> fetch: a cycle that reads it --> word_fetched --> its beats, which read weights
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal

from .beat import WaitPulses


def fetched_word(b: Block, there: Signal, waits: WaitPulses) -> Signal:
    """Read each word once, before its beats; drives ``waits.wait_memory``, which is the cycle of that read.

    Parameters
    ----------
    there : Signal
        There is a tap with beats, and its word has arrived.
    waits : WaitPulses
        The issuer's ports.

    Returns
    -------
    Signal
        Register: the word at work was read. To be cleared as the word is used for the last time.
    """
    fetched = b.reg("word_fetched")
    fetch = b.wire("fetch", 1, there & ~fetched)
    b.on(fetch, (fetched, 1))
    waits.assign(wait_memory=fetch)
    return fetched
