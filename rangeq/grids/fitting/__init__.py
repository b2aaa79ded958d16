"""From noisy grids to distributions that agree with one another."""
