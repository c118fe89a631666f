"""Steps of long work, logged with their times: ``logging.getLogger("bitloom")`` at level INFO.

The commands show them with ``-v`` and keep those of a build in its build.log (overlay/cli/progress.py). A program that
uses bitloom as a library sees them with ``logging.basicConfig(level=logging.INFO)``.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("bitloom")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Log what is done, when it begins at level DEBUG, and with its seconds when it ends at level INFO.

    Parameters
    ----------
    what
        The work, in a few words that can stand before a colon.
    """
    logger.debug("%s ...", what)
    begin = time.perf_counter()
    try:
        yield
    except BaseException as e:
        logger.info("%s: ended after %.1f s by %s", what, time.perf_counter() - begin, type(e).__name__)
        raise
    logger.info("%s: %.1f s", what, time.perf_counter() - begin)
