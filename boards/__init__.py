"""Bitstreams: boards/<board>/<overlay>/<overlay>.bit, with .hwh and .manifest.json beside it.

pynq looks here too (entry point pynq.overlays). On a board, whose environment variable BOARD holds its name, this
package is the folder of that board, so that ``Overlay("digits-cnn.bit")`` takes the bitstream that was made for it.
"""

import os

__path__ = [os.path.join(folder, os.environ.get("BOARD", "")) for folder in __path__]
