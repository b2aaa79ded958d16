"""Workloads and priors at random, and the rows of which a mechanism is made."""

import numpy as np

from mechdesign.local.workload_mechanism import _all_patterns


def all_rows(k, ratio):
    return 1 + (ratio - 1) * _all_patterns(k)


def root_of(G):
    """L with G = L L'."""
    values, vectors = np.linalg.eigh(G)
    kept = values > 1e-10 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def some_prior(k, seed):
    return np.random.default_rng(seed).dirichlet(np.full(k, 3.0))


def some_gram(k, seed):
    W = np.random.default_rng(seed).normal(size=(k + 2, k))
    return W, W.T @ W
