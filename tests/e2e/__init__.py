"""A package, so that pytest ends its site after its last test."""
