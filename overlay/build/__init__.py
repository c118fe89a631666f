"""Builds: hardware, programs and driver files of a network in one folder."""
