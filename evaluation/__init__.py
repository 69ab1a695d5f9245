"""Benchmarks, replayed through the very handlers that maintainers run: ``score(decide(event))``."""
