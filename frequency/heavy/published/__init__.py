"""The published protocols for heavy hitters: succinct histograms, by the names of their parts."""
