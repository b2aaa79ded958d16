from .certificate import ConvexCertificate
from .program import ConvexProgram, Node, SupportingPlane

__all__ = ["ConvexCertificate", "ConvexProgram", "Node", "SupportingPlane"]
