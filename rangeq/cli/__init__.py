"""The commands of rangeq."""
