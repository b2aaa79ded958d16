"""Optimal count mechanisms: linear programs in the table, their solutions and certificates."""
