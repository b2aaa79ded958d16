"""Systems for conjunctions of ranges over several attributes, one a file, under their published
names.
"""
