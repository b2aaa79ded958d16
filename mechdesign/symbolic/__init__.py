"""Mechanisms of rational functions of alpha: closed forms, and proofs for every alpha in (0, 1).

The package has the named mechanisms; `explain` and `parametric`, which find the optimal designs of
every alpha (`mechdesign.symbolic.critical_regions`); the tables (`mechdesign.symbolic.table`);
their entries (`mechdesign.symbolic.semialgebraic`); proofs of privacy, composed of smaller ones
(`mechdesign.symbolic.privacy_proof`, `mechdesign.symbolic.proof_rules`); and the sets of alphas for
which a statement is true (`mechdesign.symbolic.semialgebraic`).

>>> from mechdesign.symbolic import geometric
>>> geometric(4).audit().holds
True
>>> print(geometric(4).where("WH"))
0 < α ≤ 2/3
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
