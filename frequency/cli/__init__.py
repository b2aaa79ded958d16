"""The commands of frequency."""
