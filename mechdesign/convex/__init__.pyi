from .certificate import ConvexCertificate
from .reading import ConvexProgram, Node, SupportingPlane

__all__ = ["ConvexCertificate", "ConvexProgram", "Node", "SupportingPlane"]
