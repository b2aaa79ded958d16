"""Systems for conjunctions of ranges over several attributes, under their published names."""
