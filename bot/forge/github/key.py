"""The app's private key: read once, and wrong in one clear line."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.errors import SettingsError


def load_key(text: str, source: str = "GITHUB_APP_PRIVATE_KEY") -> RSAPrivateKey:
    """The RSA key in PEM text; ``\\n`` written as two characters, as one-line variables have it, is understood.

    Raises SettingsError that names ``source`` and never shows any of the text.
    """
    pem = text.strip().strip("\"'").replace("\\n", "\n").replace("\r\n", "\n").strip()
    if not pem:
        raise SettingsError(f"{source}: the private key is empty")
    if "PUBLIC KEY" in pem:
        raise SettingsError(f"{source}: this is a public key; GitHub's .pem file holds the private one")
    if "-----BEGIN" not in pem:
        raise SettingsError(f"{source}: not a PEM private key (one starts with '-----BEGIN RSA PRIVATE KEY-----')")
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except TypeError:
        raise SettingsError(f"{source}: the private key is protected by a password; it must not be") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(f"{source}: the private key is damaged or cut off") from None
    if not isinstance(key, RSAPrivateKey):
        raise SettingsError(f"{source}: GitHub Apps use RSA keys; this one is another kind")
    return key
