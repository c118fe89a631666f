"""The host's part around a network: images become its integers, and its integers become scores and a class."""
