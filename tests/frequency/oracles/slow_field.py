"""Finite fields, slowly, for the twins of oracles."""

import numpy as np

from frequency.algebra.finite_field import Field


class SlowField:
    """F_q: arithmetic modulo a prime; for prime powers the library's tables, after a check of the
    axioms.
    """

    def __init__(self, q):
        self.q, self.prime = q, all(q % d for d in range(2, q))
        if not self.prime:
            field, grid = Field(q), np.arange(q)
            a, b = (x.ravel() for x in np.meshgrid(grid, grid, indexing="ij"))
            self.sums, self.products = (
                field.add(a, b).reshape(q, q),
                field.multiply(a, b).reshape(q, q),
            )
            for table, start in ((self.sums, 0), (self.products, 1)):
                assert (table == table.T).all()
                assert (table[table] == table[:, table].transpose(0, 1, 2)).all()  # (ab)c = a(bc)
                # Everything has an inverse
                assert (np.sort(table[start:, start:], axis=1) == grid[start:]).all()
                assert (table[start] == grid).all()
            assert (
                self.products[:, self.sums]
                == self.sums[self.products[:, :, None], self.products[:, None, :]]
            ).all()

    def add(self, a, b):
        return (a + b) % self.q if self.prime else int(self.sums[a, b])

    def multiply(self, a, b):
        return a * b % self.q if self.prime else int(self.products[a, b])

    def dot(self, a, x, t):
        total = 0
        for j in range(t):
            total = self.add(total, self.multiply(a // self.q**j % self.q, x // self.q**j % self.q))
        return total
