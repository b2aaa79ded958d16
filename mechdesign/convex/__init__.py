"""Convex objectives and constraints of the table, with a rigorous bound on what is left to gain.

``design(..., objective=..., constraints=...)`` states them in expressions of cvxpy. What is linear
joins the ordinary exact program. The rest is solved by a conic solver, made exact, and certified.
"""

from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.convex.program import ConvexProgram, Node, SupportingPlane

__all__ = ["ConvexCertificate", "ConvexProgram", "Node", "SupportingPlane"]
