"""The rules of C."""

from __future__ import annotations

from bot.code.symbols.language_rules import LanguageRules

LANGUAGE = LanguageRules("c", has_interfaces=False, is_flat=True)
