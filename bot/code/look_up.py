"""Look up code that a phrase names: ``Session.collect in src/main.py``, ``callers of load``, ``MAX_SIZE``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from bot.code.changed import Changed, named
from bot.code.index import FileDefinition, family
from bot.code.names import PATH, names_in
from bot.code.page import CodeExcerpt
from bot.code.related import head
from bot.code.uses import uses

#: Names of one phrase that are looked up, definitions of one name that are shown, and its callers.
MAX_NAMES, MAX_PLACES, MAX_CALLERS = 6, 3, 4
#: Characters of a phrase that are read.
LONGEST = 500

_ASKS_FOR_USES = re.compile(r"\b(?:callers?|calls?|called|uses?|used|usages?|users?)\b", re.I)


def look_up(phrase: str, changed: Changed) -> Iterator[CodeExcerpt]:
    """Yield the definitions that a phrase names, and their callers if it asks for them.

    Only names in the form of code count, or a phrase that is one name. A name with many definitions gives none.
    """
    phrase = phrase[:LONGEST]
    paths = PATH.findall(phrase)
    for name in names_in(phrase)[:MAX_NAMES]:
        places = _definitions(name, changed, paths)
        for place in places:
            yield CodeExcerpt(place.path, head(changed.index, place), f"{named(place.definition)}, looked up")
        if places and _ASKS_FOR_USES.search(phrase):
            last = places[0].definition.name
            mentions = changed.index.mentioning([last], family(places[0].path))[last]
            yield from islice(uses(changed, last, places, mentions), MAX_CALLERS)


def _definitions(name: str, changed: Changed, paths: Sequence[str]) -> list[FileDefinition]:
    """Return the definitions of a qualified name, in the languages of the change."""
    *owners, last = name.split(".")
    languages = dict.fromkeys(filter(None, (family(file.path) for file in changed.files)))
    places = [place for language in languages for place in changed.index.defining([last], language).get(last, ())]
    by_path = [place for place in places if any(place.path.endswith(path) for path in paths)]
    by_owner = [place for place in places if owners and _belongs(place, owners[-1])]
    nearest = [place for place in places if any(place.path == file.path for file in changed.files)]
    for selection in (by_path, by_owner, places if len(places) <= MAX_PLACES else [], nearest):
        if selection:
            return selection[:MAX_PLACES]
    return []


def _belongs(place: FileDefinition, owner: str) -> bool:
    module = place.path.rpartition("/")[2].partition(".")[0]
    return owner in (place.definition.within.rpartition(".")[2], module)
