"""Clients: what devices run makes the same reports as arrays do."""
