"""``python -m evaluation`` is ``bouncer-eval``."""

from evaluation.cli import main

main()
