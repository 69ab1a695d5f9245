"""Durable jobs: a delivery is recorded before it is answered, and each of its tasks runs to an end."""
