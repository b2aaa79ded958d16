"""Convex objectives and constraints of the table, with a rigorous bound on what is left to gain.

``design(..., objective=..., constraints=...)`` states them in expressions of cvxpy. What is linear
joins the ordinary exact program. The rest is solved by a conic solver, made exact, and certified.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
