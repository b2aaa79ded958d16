"""What is asked of people: attributes, with names and sizes.

>>> domain = Domain({"age": 5, "smokes": 2})
>>> domain.items([[4, 1], [0, 0]]).tolist()
[9, 0]
"""

from frequency.schema.domain import Domain

__all__ = ["Domain"]
