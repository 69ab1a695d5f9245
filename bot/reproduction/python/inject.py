"""Put a drafted test into a Python file by adding lines, so that nothing in the file can change. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from typing import TypeVar

import libcst as cst

from bot.reproduction.language import DraftRejected, Injected, Names
from bot.reproduction.python.draft import PythonDraft, bound_names, render
from bot.reproduction.python.host import Host, place, read_host
from bot.reproduction.python.names import BUILTINS, Binding, free_names, import_bindings_of, unique

Node = TypeVar("Node", bound=cst.CSTNode)


def add_to(draft: PythonDraft, source: str, test_name: str | None, names: Names) -> Injected:
    """The host with the test in it; raises DraftRejected where it cannot live there."""
    host = read_host(source)
    draft = place(draft, host)
    draft = draft.with_nodes(tuple(tidy(requoted(node, host.quote)) for node in draft.nodes))
    draft = draft.named(unique(test_name or draft.test.name.value, host.names | BUILTINS))
    imports, other_names = _settle(draft, host, names)
    draft = draft.with_nodes(tuple(renamed(node, other_names) for node in draft.nodes))
    return Injected(content=_written(host, imports, draft), test_id=draft.test_id, code=_shown(imports, draft))


def alone(draft: PythonDraft, test_name: str | None, names: Names) -> Injected:
    """The test in a new file; raises DraftRejected where it needs a name that is nowhere."""
    draft = draft.with_nodes(tuple(tidy(node) for node in draft.nodes))
    draft = draft.named(test_name or draft.test.name.value)
    code = _shown(_statements(_wanted(draft, frozenset(), names)), draft)
    return Injected(content=code, test_id=draft.test_id, code=code)


def _settle(draft: PythonDraft, host: Host, names: Names) -> tuple[tuple[str, ...], dict[str, str]]:
    """The import statements to add, and new names for what the host calls something else."""
    added: list[Binding] = []
    other: dict[str, str] = {}
    taken = host.names | {binding.name for binding in draft.imports} | _own(draft)
    for binding in _wanted(draft, host.names, names):
        if binding.origin in host.imports.get(binding.name, ()):
            continue
        if _room_for(binding, host):
            added.append(binding)
            continue
        alias = unique(binding.name, taken)
        again = binding.renamed(alias)
        if again is None:
            raise DraftRejected(f"`{binding.name}` means something else in the test file")
        taken |= {alias}
        other[binding.name] = alias
        added.append(again)
    for name in sorted(_own(draft) & (host.names | BUILTINS)):
        other[name] = unique(name, taken | BUILTINS)
        taken |= {other[name]}
    return _statements(added), other


def _own(draft: PythonDraft) -> frozenset[str]:
    """Module-level names that the draft brings along, its test function aside."""
    found = frozenset(name for helper in draft.helpers for name in bound_names(helper))
    return found | {draft.holder.name.value} if draft.holder is not None else found


def _wanted(draft: PythonDraft, known: frozenset[str], names: Names) -> list[Binding]:
    """The draft's imports that are needed, and those for what it uses without saying where it comes from."""
    needed = free_names(render(draft.nodes))
    wanted = [binding for binding in draft.imports if binding.name in needed]
    imported = {binding.name for binding in draft.imports}
    for name in sorted(needed - imported - known - BUILTINS):
        well_known = name in sys.stdlib_module_names or name == "pytest"
        statement = names.provider(name) or (f"import {name}" if well_known else None)
        if statement is None:
            raise DraftRejected(f"it uses `{name}` without importing it")
        wanted.extend(import_bindings_of(statement))
    return wanted


def _room_for(binding: Binding, host: Host) -> bool:
    if binding.name in BUILTINS:
        return False
    if binding.package:
        others = host.imports.get(binding.name, set())
        if others and all(len(each) == 1 and each[0].partition(".")[0] == binding.name for each in others):
            return True
    return binding.name not in host.names


def _statements(bindings: Iterable[Binding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(binding.statement for binding in bindings))


def _written(host: Host, imports: Sequence[str], draft: PythonDraft) -> str:
    """The host's lines with the new ones between them."""
    additions: dict[int, list[str]] = {}
    if imports:
        additions[host.after_imports] = _import_lines(host, imports)
    definitions = list(draft.helpers)
    if draft.case is not None:
        method = _method(draft.test, draft.case.indent, host.indent)
        additions.setdefault(draft.case.end, []).extend(["", *method])
    else:
        definitions.append(draft.holder or draft.test)
    for node in definitions:
        additions.setdefault(host.end, []).extend(["", "", *_lines(render([node], host.indent))])
    return _merged(host, additions)


def _import_lines(host: Host, imports: Sequence[str]) -> list[str]:
    below = host.lines[host.after_imports :]
    if host.after_imports:
        # Below a docstring or a licence the imports stand apart.
        above = host.lines[host.after_imports - 1].lstrip()
        apart = not above.startswith(("import ", "from ", ")")) and not host.imports
        return ["", *imports] if apart else list(imports)
    return [*imports, *([""] if below and below[0].strip() else [])]


def _method(test: cst.FunctionDef, indent: str, unit: str) -> list[str]:
    """A method's lines at its class's indentation; text within long strings stays where it is."""
    holder = cst.ClassDef(name=cst.Name("_"), body=cst.IndentedBlock([test], indent=indent))
    return _lines(render([holder], unit))[1:]


def _lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


def _merged(host: Host, additions: dict[int, list[str]]) -> str:
    parts: list[str] = []
    for number, line in enumerate(("", *host.lines)):
        parts.append(line)
        if number in additions:
            if line and not line.endswith("\n"):
                parts.append(host.newline)
            new = additions[number] if parts != [""] else list(dropwhile(lambda each: not each, additions[number]))
            parts.extend(f"{each.removesuffix(chr(13))}{host.newline}" for each in new)
    return "".join(parts)


def _shown(imports: Sequence[str], draft: PythonDraft) -> str:
    pieces = ["\n".join(imports)] if imports else []
    pieces += [render([node]).strip("\n") for node in draft.nodes]
    return "\n\n\n".join(pieces) + "\n"


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """``node`` with variables, functions, classes and parameters called otherwise; attributes keep their names."""
    return _visited(node, _Rename(names)) if names else node


def requoted(node: Node, quote: str) -> Node:
    """``node`` with plain one-line strings in the given quotation marks, where that needs no escaping."""
    return _visited(node, _Requote(quote))


def tidy(node: Node) -> Node:
    """A statement without blank lines above it; comments above it stay."""
    above = getattr(node, "leading_lines", None)
    if not above:
        return node
    return _same(node.with_changes(leading_lines=[line for line in above if line.comment is not None]), node)


def _visited(node: Node, transformer: cst.CSTTransformer) -> Node:
    return _same(node.visit(transformer), node)


def _same(changed: object, node: Node) -> Node:
    assert isinstance(changed, type(node))
    return changed


class _Rename(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._names.get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


class _Requote(cst.CSTTransformer):
    def __init__(self, quote: str) -> None:
        super().__init__()
        self._quote = quote
        self._inside = 0

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        # Before Python 3.12 a string within an f-string must use the other quotation mark.
        self._inside += 1

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        self._inside -= 1
        return updated_node

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        content = updated_node.raw_value
        if self._inside or len(updated_node.quote) != 1 or any(mark in content for mark in "'\"\\"):
            return updated_node
        return updated_node.with_changes(value=f"{updated_node.prefix}{self._quote}{content}{self._quote}")
