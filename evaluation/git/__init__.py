"""Read untrusted clones, and find the pull requests of their commits."""
