"""Reading clones that nobody vouches for, and where their commits came from."""
