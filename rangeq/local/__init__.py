"""Protocols for one ordered attribute under local differential privacy, one a file."""
