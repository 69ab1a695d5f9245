"""Benchmarks that no model has read: executable tasks from the recent fixes of a clone's own history."""
