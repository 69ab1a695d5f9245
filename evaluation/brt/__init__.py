"""Bug-reproducing tests: recorded rankings, judged candidates and the figures of LIBRO."""
