"""AIM by its authors' scripts, for `benchmarks/curators.py`: run by a Python that has mbi.

python aim_of_mbi.py PEOPLE SCRIPTS EPSILON DELTA RUNS ROUNDS MODEL

Prints as JSON the mean total variation of all two-way marginals, and the seconds, of each run. The
scripts are older than mbi 2.0: its mirror descent is a class now, its cliques are a tuple, and
column vectors are no arrays of NumPy.
"""

import contextlib
import io
import itertools
import json
import sys
import time

import numpy as np

path, scripts, epsilon, delta, runs, rounds, model_size = sys.argv[1:]
sys.path.insert(0, scripts)

import mbi  # noqa: E402
from mbi import estimation  # noqa: E402


def mirror_descent(domain, measurements, iters=1000, potentials=None, callback_fn=None):
    return estimation.MirrorDescent().estimate(
        domain, measurements, iters=iters, warm_start=potentials
    )


estimation.mirror_descent = mirror_descent

import aim  # noqa: E402


def filtered(candidates, model, size_limit):
    """The script's own filter, which adds a list to the cliques."""
    free = aim.downward_closure(model.cliques)
    cliques = [*model.cliques]
    return {
        clique: weight
        for clique, weight in candidates.items()
        if clique in free
        or mbi.junction_tree.hypothetical_model_size(model.domain, [*cliques, clique]) <= size_limit
    }


aim.filter_candidates = filtered


def main() -> None:
    people = np.load(path)
    records, sizes = people["records"], people["sizes"].tolist()
    names = [f"a{place}" for place in range(len(sizes))]
    columns = {name: records[:, place] for place, name in enumerate(names)}
    data = mbi.Dataset(columns, mbi.Domain(names, sizes))
    views = list(itertools.combinations(names, 2))
    distances, seconds = [], []
    for seed in range(int(runs)):
        np.random.seed(seed)  # noqa: NPY002  as the scripts draw
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            mechanism = aim.AIM(
                float(epsilon), float(delta), rounds=int(rounds), max_model_size=float(model_size)
            )
            mechanism.prng = np.random
            model, _ = mechanism.run(data, [(view, 1.0) for view in views])
        seconds.append(time.perf_counter() - start)
        errors = []
        for view in views:
            truth = np.asarray(data.project(view).datavector())
            found = np.asarray(model.project(view).datavector())
            errors.append(np.abs(truth / truth.sum() - found / found.sum()).sum() / 2)
        distances.append(float(np.mean(errors)))
    print(json.dumps([distances, seconds]))


main()
