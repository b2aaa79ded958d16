"""The published systems for conjunctions of ranges over several attributes, by their names."""
