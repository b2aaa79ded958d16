"""Exact draws: from tables, of discrete Laplace, discrete Gaussian and staircase noise."""
