"""How many tokens a text will cost at most: an estimate that errs on the safe side, for any model.

No tokenizer is at hand for most models, so each byte is given a weight at which no text was seen to cost more:
2,081 real patches and random base64, hexadecimal, letters, punctuation, blanks, Chinese and emoji were counted
with SmolLM2's tokenizer, whose vocabulary (49,152) is smaller than the large models' and therefore splits more.
Real patches cost about half of the estimate.
"""

from __future__ import annotations

import math

# In twentieths of a token. Bytes beyond ASCII: byte-level encodings never spend more than one token on a byte.
_UNIT = 20


def _weight(byte: int) -> int:
    char = chr(byte)
    if byte >= 0x80 or char == "\n":
        return 20
    if char == " ":
        return 10
    if char.islower():
        return 12
    if char.isdigit():
        return 22
    return 40 if char.isspace() else 20


_WEIGHTS = bytes(_weight(byte) for byte in range(256))


def estimate(text: str) -> int:
    """Tokens that ``text`` costs at most; never less than the sum over its parts rounds down to."""
    return math.ceil(sum(text.encode("utf-8", "replace").translate(_WEIGHTS)) / _UNIT)
