"""Domain types and pure functions that every package may import."""
