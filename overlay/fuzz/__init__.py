"""Attacks on what comes from outside, with seeds: each returns what happened, and the same seed does the same again."""
