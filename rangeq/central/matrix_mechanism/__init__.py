"""The matrix mechanism: what to measure, with which noise, so that given queries come out best."""
