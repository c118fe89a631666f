"""A virtual board behind PYNQ's own remote protocol: a stock pynq in another process or environment drives it."""

PORT = 7967
"""Where pynq looks for a remote board, and nowhere else (PYNQ_PORT in pynq/pl_server/remote_device.py)."""
