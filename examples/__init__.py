"""Scripts and notebooks, to be run or imported.

It is a package so that another package of this name is not imported in its place.
"""
