"""Scripts and notebooks, to be run or imported. A package, so that no other of this name is taken
for it.
"""
