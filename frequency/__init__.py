"""Frequency estimation under local differential privacy. No protocol is in this package yet."""
