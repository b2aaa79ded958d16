"""Exact draws: from tables, of discrete Laplace and of discrete Gaussian noise."""
