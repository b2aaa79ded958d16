"""Range, prefix and quantile queries under differential privacy. No protocol is in this package yet."""
