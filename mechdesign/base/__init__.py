"""Internals that the three packages share: text, numbers, files, randomness, linear algebra."""
