"""``bouncer calibrate``: the line with a promise, from a repository's own history."""
