"""What several collections from the same people cost together."""
