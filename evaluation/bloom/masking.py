"""New names for methods, everywhere in a code base: source texts in, source texts out. Pure.

The paper renames declarations and invocations by name (section 3.3). A name is one word of the language's own
tokens, so renaming tokens renames every use of it consistently; what a rename cannot follow is refused beforehand.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import keyword
import re
import tokenize
import warnings
from collections.abc import Iterable, Mapping, Sequence

PREFIX = "func_"

_BUILTIN_TYPES = (
    object,
    str,
    bytes,
    int,
    float,
    list,
    dict,
    set,
    tuple,
    type,
    BaseException,
    io.StringIO,
    frozenset,
)
#: Names that values of Python itself have: code outside of the repository calls them, too.
_FOREIGN = frozenset(name for each in _BUILTIN_TYPES for name in dir(each)) | frozenset(dir(builtins))
_DOTTED = re.compile(r"[A-Za-z_][\w.:]*")


class CannotMask(ValueError):
    """A name that cannot be changed without breaking what lies outside of the repository; the message says why."""


def hash_name(name: str) -> str:
    """``func_`` and the SHA-256 of the name: nothing of its meaning is left (section 3.3)."""
    return PREFIX + hashlib.sha256(name.encode()).hexdigest()


def meaningful_name(proposed: str) -> str:
    """A model's proposal as a name: ``func_`` makes it unique and no keyword. Raises CannotMask."""
    if not proposed.isidentifier() or len(proposed) > 80:
        raise CannotMask(f"{proposed!r} is no name")
    return PREFIX + proposed


def check(name: str, sources: Mapping[str, str]) -> None:
    """Raises CannotMask where ``name`` is not the repository's own to change. ``sources``: Python text by path."""
    if keyword.iskeyword(name) or not name.isidentifier():
        raise CannotMask(f"{name} is no name of a method")
    if name.startswith("__") and name.endswith("__"):
        raise CannotMask(f"{name} is called by Python itself")
    if name in _FOREIGN:
        raise CannotMask(f"{name} is a name of Python's own types, too")
    own = {part for path in sources for part in path.removesuffix(".py").split("/")}
    for path, text in sources.items():
        if name in text and (module := _used_from_outside(name, text, own)):
            raise CannotMask(f"{path} uses {name} of {module}, which is not in the repository")


def mask_python(text: str, names: Mapping[str, str]) -> str:
    """Python source with every token in ``names`` renamed, and names within strings that are nothing but names.

    A string such as ``"pkg.module.name"`` (``__all__``, ``mock.patch``, ``getattr``) is one; prose is not. Source
    that cannot be tokenized is returned as it is.
    """
    if not any(name in text for name in names):
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
    for token in reversed(tokens):
        new = _renamed(token, names)
        if new is not None:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + new + line[column + len(token.string) :]
    return "".join(lines)


def mask_java(text: str, names: Mapping[str, str]) -> str:
    """Java source with declarations, invocations and references of the named methods renamed.

    Needs javalang (the extra ``java``). Fields and classes of the same name stay: only an identifier before an
    opening bracket or behind ``::`` is a method. Source that cannot be read is returned as it is.
    """
    if not any(name in text for name in names):
        return text
    from javalang import tokenizer

    try:
        tokens = list(tokenizer.tokenize(text))
    except (tokenizer.LexerError, StopIteration):
        return text
    lines = text.split("\n")
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.value in names and isinstance(token, tokenizer.Identifier) and _is_method(tokens, index):
            row, column = token.position
            line = lines[row - 1]
            lines[row - 1] = line[: column - 1] + names[token.value] + line[column - 1 + len(token.value) :]
    return "\n".join(lines)


def mask_report(report: str, names: Mapping[str, str]) -> str:
    """A report with the same names changed, as whole words."""
    for name, new in names.items():
        report = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", new, report)
    return report


def patched_methods(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the Python functions and methods whose text differs between two versions, in order of files.

    The innermost one around each difference; functions that only one version has count as patched there.
    """
    found: dict[str, None] = {}
    for path in sorted(set(before) | set(after)):
        old, new = before.get(path, ""), after.get(path, "")
        if old != new:
            left, right = _functions(old), _functions(new)
            changed = [name for name in (*left, *right) if left.get(name) != right.get(name)]
            found.update(dict.fromkeys(name.rpartition(".")[2] for name in _innermost(changed)))
    return tuple(found)


def _innermost(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if not any(other.startswith(f"{name}.") for other in names)]


def _functions(text: str) -> dict[str, str]:
    """Source of each function by dotted name; nothing where the text cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    _collect(tree.body, "", text, found)
    return found


def _collect(body: Iterable[ast.stmt], prefix: str, text: str, found: dict[str, str]) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            if not isinstance(node, ast.ClassDef):
                found[name] = ast.get_source_segment(text, node) or ""
            _collect(node.body, f"{name}.", text, found)


def _used_from_outside(name: str, text: str, own: set[str]) -> str:
    """The foreign module through which a file reaches something of that name; empty where none is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {(each.asname or each.name).partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            if module.partition(".")[0] not in own and any(each.name == name for each in node.names):
                return module
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name):
            module = aliases.get(node.value.id, "")
            if module and module.partition(".")[0] not in own:
                return module
    return ""


def _renamed(token: tokenize.TokenInfo, names: Mapping[str, str]) -> str | None:
    if token.type == tokenize.NAME:
        return names.get(token.string)
    if token.type == tokenize.STRING:
        opening = re.match(r"[A-Za-z]*('''|\"\"\"|'|\")", token.string)
        assert opening is not None
        content = token.string[opening.end() : len(token.string) - len(opening[1])]
        parts = re.split(r"([.:])", content)
        if _DOTTED.fullmatch(content) and any(part in names for part in parts):
            new = "".join(names.get(part, part) for part in parts)
            return token.string[: opening.end()] + new + opening[1]
    return None


def _is_method(tokens: Sequence[object], index: int) -> bool:
    after = getattr(tokens[index + 1], "value", "") if index + 1 < len(tokens) else ""
    before = getattr(tokens[index - 1], "value", "") if index else ""
    return (after == "(" and before != "new") or before == "::"
