"""The rules for resolving names in which languages differ: a file for each."""

from __future__ import annotations

from bot.code.parsing.grammars import family
from bot.code.symbols.language_rules import LanguageRules
from bot.code.symbols.languages import c, go, java, python, rust, script

_ALL = (python.LANGUAGE, script.LANGUAGE, go.LANGUAGE, java.LANGUAGE, rust.LANGUAGE, c.LANGUAGE)
_LANGUAGES = {language.name: language for language in _ALL}
_OTHER = LanguageRules("")


def rules_of(path: str) -> LanguageRules:
    """Return the rules of a file's language, by its suffix; without a grammar, rules without a name."""
    return _LANGUAGES.get(family(path), _OTHER)
