"""``python -m tests.attacks``: how many attacks the corpus tries, by class and by what must never happen."""

from __future__ import annotations

from tests.attacks.corpus import CLASSES, tables


def main() -> None:
    """Count and print."""
    total = 0
    for name, module in CLASSES.items():
        groups = [(never, len(attacks)) for table in tables(module) for never, attacks in table.items()]
        count = sum(number for _, number in groups)
        total += count
        print(f"{count:4}  {name}")
        for never, number in groups:
            print(f"      {number:4}  never: {never}")
    print(f"{total:4}  in all")


if __name__ == "__main__":
    main()
