"""What designs with an objective must have."""

from mechdesign import ConvexCertificate, Design


def proof(d: Design) -> ConvexCertificate:
    """The certificate of the objective."""
    assert d.convex is not None
    return d.convex
