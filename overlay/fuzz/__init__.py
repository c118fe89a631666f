"""Attacks on what comes from outside and on the device, with seeds: ``bitloom fuzz``."""
