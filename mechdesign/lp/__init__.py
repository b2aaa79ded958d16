"""Exact linear programming: solved in floats by HiGHS, then exactly, with a proof.

Nothing here depends on privacy.
"""
