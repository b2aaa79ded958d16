"""What the three packages share and users do not call: text, numbers, files, randomness, linear
algebra.
"""
