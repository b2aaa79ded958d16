"""Exact linear programming: solved in floats by HiGHS, then exactly, with a proof. It knows nothing
of privacy.
"""
