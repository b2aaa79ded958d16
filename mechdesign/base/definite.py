"""Positive definite matrices that are positive definite in every order of summation.

A product W W' is off by rounding, relative to the lengths of the rows of W; a difference of two
matrices is off by any factor, and may be indefinite. So what is factored here are products.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats

_ROUNDED = 2e-13
"""How far entries of a product are off at most, relative to the roots of the diagonal's."""


def cholesky(product: Floats, diagonal: Floats) -> Floats:
    """Cholesky's factor of a product W W' plus a diagonal matrix, whatever their scales.

    Parameters
    ----------
    product : numpy.ndarray of float64
        Shape (rows, rows): positive semidefinite but for rounding.
    diagonal : numpy.ndarray of float64
        Shape (rows,), positive: of the diagonal matrix.

    Returns
    -------
    numpy.ndarray of float64
        Shape (rows, rows): lower triangular. The diagonal of what it is the factor of is larger
        by what rounding may have taken away.
    """
    size = len(product)
    scale = np.sqrt(np.diag(product) + diagonal)
    inner = (product + np.diag(diagonal)) / scale / scale[:, None]
    triangle = np.linalg.cholesky(inner + size * _ROUNDED * np.eye(size))
    return np.asarray(triangle * scale[:, None], dtype=np.float64)


def posterior_root(root: Floats, product: Floats) -> tuple[Floats, float]:
    """A root U of root (I + product)^-1 root', and the logarithm of the determinant in it.

    If the product is root' P root, U U' is the posterior covariance ((root root')^-1 + P)^-1, also
    where root has no inverse: positive semidefinite, and not by a difference.

    Parameters
    ----------
    root : numpy.ndarray of float64
        Shape (coordinates, rank).
    product : numpy.ndarray of float64
        Shape (rank, rank): W W', positive semidefinite but for rounding.

    Returns
    -------
    tuple of (numpy.ndarray of float64, float)
        Shape (coordinates, rank); log det (I + product).
    """
    triangle = cholesky(product, np.ones(len(product)))
    half = np.asarray(np.linalg.solve(triangle, root.T).T, dtype=np.float64)
    return half, 2 * float(np.log(np.diag(triangle)).sum())
