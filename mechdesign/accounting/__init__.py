"""Privacy accounting: what several collections from the same users cost together."""
