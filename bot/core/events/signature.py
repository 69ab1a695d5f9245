"""Who sent these bytes: the signature over a delivery's raw body."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable

from bot.errors import InvalidSignature

_FORM = re.compile(r"sha256=[0-9a-f]{64}")


def sign(body: bytes, secret: str) -> str:
    """The value of ``X-Hub-Signature-256`` for these bytes."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_form(signature: str) -> None:
    """Refuse what cannot be a signature, whatever the body; raises InvalidSignature."""
    if not signature.strip():
        raise InvalidSignature("the signature is missing")
    if not _FORM.fullmatch(signature.strip()):
        raise InvalidSignature("the signature does not match")


def verify(body: bytes, signature: str | None, secrets: Iterable[str]) -> None:
    """Hold the raw bytes against the signature that came with them, in constant time per secret.

    Several secrets are accepted, so that one can be replaced without losing a delivery.
    Raises InvalidSignature.
    """
    given = (signature or "").strip().encode("utf-8", "replace")
    # No early exit: which of the secrets matched must not show in the time taken.
    matches = [hmac.compare_digest(sign(body, secret).encode(), given) for secret in secrets if secret]
    if not any(matches):
        raise InvalidSignature("the signature is missing" if not given else "the signature does not match")
