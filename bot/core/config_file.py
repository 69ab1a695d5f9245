"""Read ``.github/bouncer.yml``. Mistakes are reported with key, line and allowed values; the other keys count."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import yaml
from pydantic import ValidationError

from bot.core.config import MODES, Problem, RepoConfig
from bot.core.errors import ConfigError
from bot.core.frozen import Frozen, in_plain_words

MAX_BYTES = 64 * 1024
#: Half of a surrogate pair, which YAML can contain and a database cannot store.
_HALF = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 10


class _Loader(yaml.SafeLoader):
    """Reads scalars as in YAML 1.2: ``off`` and ``no`` are words, dates are text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), [*_first] + ([""] if _tag == "null" else [])
    )


def load(text: str | bytes) -> tuple[RepoConfig, tuple[Problem, ...]]:
    """Return the configuration in a file's text, and its mistakes.

    A wrong value falls back to its default. A mistake that may have switched posting off (in a mode, a section, or
    the whole file) puts the sections concerned in shadow mode.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MAX_BYTES:
        return _unreadable(1, f"the file is larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
        _refuse_tricks(text)
        root = yaml.compose(text, Loader=_Loader)
        return _validate(*_mapping(root))
    except UnicodeDecodeError:
        return _unreadable(1, "the file is not UTF-8")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        message = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        return _unreadable(line, f"not YAML: {message}")


def value(text: str) -> Any:
    """Read one value as it stands in a file, such as ``80``, ``off`` or ``[docs/]``; raises ValueError."""
    try:
        _refuse_tricks(text)
        root = yaml.compose(text, Loader=_Loader)
        return None if root is None else _plain(root, (), {})
    except yaml.YAMLError as error:
        raise ValueError(str(getattr(error, "problem", None) or error)) from None


def _unreadable(line: int, message: str) -> tuple[RepoConfig, tuple[Problem, ...]]:
    return RepoConfig().in_shadow(), (Problem(key="", line=line, message=message, shadowed=MODES),)


def _refuse_tricks(text: str) -> None:
    """Raise MarkedYAMLError for deep nesting, tags, anchors, aliases, half characters and NUL."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        tag = getattr(event, "tag", None)
        trick = "nested too deeply" if depth > _MAX_DEPTH else f"{tag[:60]}: tags are not used here" if tag else ""
        if isinstance(event, yaml.ScalarEvent) and _HALF.search(event.value):
            trick = "half a character stands here"
        elif isinstance(event, yaml.ScalarEvent) and "\0" in event.value:
            trick = "a NUL character stands here"
        if trick or getattr(event, "anchor", None):
            problem = trick or "anchors and aliases are not used here"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]


_Lines = dict[tuple[str, ...], int]


def _mapping(root: yaml.Node | None) -> tuple[dict[str, Any], _Lines]:
    """Return the plain values of a YAML document, and the line of every key."""
    lines: _Lines = {(): 1}
    if root is None:
        return {}, lines
    if not isinstance(root, yaml.MappingNode):
        raise yaml.MarkedYAMLError(problem="the file must be a mapping of keys", problem_mark=root.start_mark)
    value = _plain(root, (), lines)
    return value, lines


def _plain(node: yaml.Node, path: tuple[str, ...], lines: _Lines) -> Any:
    if isinstance(node, yaml.MappingNode):
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            here = (*path, key)
            if here in lines:
                raise yaml.MarkedYAMLError(problem=f"{key!r} stands twice", problem_mark=key_node.start_mark)
            lines[here] = key_node.start_mark.line + 1
            value[key] = _plain(value_node, here, lines)
        return value
    if isinstance(node, yaml.SequenceNode):
        return tuple(_plain(item, (*path, str(index)), lines) for index, item in enumerate(node.value))
    try:
        return _Loader("").construct_object(node, deep=True)
    except ValueError as error:
        raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from None


def _validate(value: dict[str, Any], lines: _Lines) -> tuple[RepoConfig, tuple[Problem, ...]]:
    problems: dict[str, Problem] = {}
    while True:
        try:
            config = RepoConfig.model_validate(value)
            break
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                path = tuple(map(str, detail["loc"]))
                while path not in lines:
                    path = path[:-1]
                key = ".".join(path)
                problem = Problem(key=key, line=lines[path], message=_message(detail), shadowed=_governed(path))
                problems.setdefault(key, problem)
                _drop(value, path)
    shadowed = [section for problem in problems.values() for section in problem.shadowed]
    config = config.in_shadow(*shadowed) if shadowed else config
    return config, tuple(sorted(problems.values(), key=lambda problem: problem.line))


def _governed(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sections whose mode a wrong or unknown key may have been meant to set."""
    section, *rest = path
    is_mode = get_close_matches(path[-1].lower(), ["mode"])
    if section in MODES:
        return (section,) if not rest or (len(rest) == 1 and is_mode) else ()
    if is_mode and not rest:
        return MODES
    return () if section in RepoConfig.model_fields else tuple(get_close_matches(section.lower(), MODES, n=1))


def _drop(value: dict[str, Any], path: tuple[str, ...]) -> None:
    *parents, last = path
    for key in parents:
        if isinstance(value.get(key), tuple):
            value.pop(key)  # A list is valid as a whole or not at all.
            return
        value = value.get(key, {})  # an earlier mistake may have removed it
    value.pop(last, None)


def _message(error: Any) -> str:
    path = tuple(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        keys = _siblings(path)
        close = get_close_matches(path[-1].lower(), keys, n=1)
        suggestion = f"; did you mean {close[0]}?" if close else ""
        return f"unknown key{suggestion}; known here: {', '.join(keys)}"
    value = str(error.get("input"))[:60]
    return f"{in_plain_words(error)}, not {value!r}"


def _siblings(path: tuple[str, ...]) -> list[str]:
    """Return the valid keys beside the last element of ``path``."""
    model: type[Frozen] = RepoConfig
    for key in path[:-1]:
        field = model.model_fields.get(key)
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, Frozen):
            break
        model = field.annotation
    return sorted(model.model_fields)


def checked(values: dict[str, Any]) -> RepoConfig:
    """Return a configuration from plain values, for the command line. Raises ConfigError."""
    try:
        return RepoConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc']))}: {_message(first)}") from None
