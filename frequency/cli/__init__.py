"""The commands of frequency: collect."""
