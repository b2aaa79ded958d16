"""The mathematics below the protocols: finite fields, hash functions, codes and exact draws."""
