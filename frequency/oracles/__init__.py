"""Frequency oracles, one a file."""
