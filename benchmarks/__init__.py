"""What is measured, and against whom: see README.md here. A package, so that no other of this name
is taken for it.
"""
