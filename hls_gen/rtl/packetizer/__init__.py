"""The packetizer: a raw stream becomes FRAME packets, as a core of its own in front of a device."""
