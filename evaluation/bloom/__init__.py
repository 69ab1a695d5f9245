"""Six layers of test generation from bug reports, after Bloom's taxonomy.

Source: Qureshi and Jiang, Test Case Generation from Bug Reports via Large Language Models: A Cognitive Layered
Evaluation Framework, section 3. A layer changes the cases and measures the effect. Tests are always drafted by
``bouncer-eval replay brt``, on the cases that a layer built.
"""

from __future__ import annotations

from typing import Literal

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.bloom.commands"

ENTRIES = {
    "bloom": Entry(
        "known bugs with reworded reports or renamed methods, in six layers (Qureshi and Jiang)",
        {
            "build": (f"{_COMMANDS}:build", "Reword reports or rename methods of known bugs, for replay brt."),
            "score": (f"{_COMMANDS}:score", "Compare runs of replay brt layer by layer."),
        },
    )
}

Change = Literal["rephrased", "translated", "hash", "meaningful", "clarified"]

#: The language that reports are translated into, chosen because it needs no other script (section 3.2).
LANGUAGE = "Romanized Urdu"
