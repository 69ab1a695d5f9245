"""Running tasks: generate once, keep what was paid for, score many times."""
