"""Put a drafted test into a Python file by adding lines, so that nothing in the file can change. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import libcst as cst

from bot.reproduce.language import DraftRejected, Injected, Names
from bot.reproduce.python.draft import PythonDraft, Statement, bound_names, render
from bot.reproduce.python.host import Host, read_host
from bot.reproduce.python.names import BUILTINS, Binding, free_names, import_bindings_of, unique
from bot.reproduce.python.placement import Placement, place
from bot.reproduce.python.rewrite import renamed, requoted, tidy


def add_to(draft: PythonDraft, source: str, test_name: str | None, names: Names) -> Injected:
    """The host with the test in it; raises DraftRejected where it cannot live there."""
    host = read_host(source)
    placement = place(draft, host)
    placement = placement.with_nodes(tuple(tidy(requoted(node, host.quote)) for node in placement.nodes))
    placement = placement.named(_test_name(placement, test_name, host.names))
    imports, other_names = _settle(draft, placement, host, names)
    placement = placement.with_nodes(tuple(renamed(node, other_names) for node in placement.nodes))
    return Injected(
        content=_written(host, imports, placement),
        test_id=_test_id(placement),
        code=_shown(imports, placement),
    )


def alone(draft: PythonDraft, test_name: str | None, names: Names) -> Injected:
    """The test in a new file; raises DraftRejected where it needs a name that is nowhere."""
    placement = Placement(helpers=draft.helpers, test=draft.test, holder=draft.holder)
    placement = placement.with_nodes(tuple(tidy(node) for node in placement.nodes))
    placement = placement.named(test_name or placement.test.name.value)
    needed = free_names(render(placement.nodes))
    bindings = [binding for binding in draft.imports if binding.name in needed]
    bindings += _missing(needed, draft, frozenset(), names)
    code = _shown(_statements(bindings), placement)
    return Injected(content=code, test_id=_test_id(placement), code=code)


def _test_name(placement: Placement, wanted: str | None, taken: frozenset[str]) -> str:
    return unique(wanted or placement.test.name.value, taken | BUILTINS)


def _test_id(placement: Placement) -> str:
    name = placement.test.name.value
    if placement.holder is not None:
        return f"{placement.holder.name.value}::{name}"
    return f"{placement.case.name}::{name}" if placement.case else name


def _settle(
    draft: PythonDraft, placement: Placement, host: Host, names: Names
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The import statements to add, and new names for what the host calls something else."""
    needed = free_names(render(placement.nodes))
    added: list[Binding] = []
    other: dict[str, str] = {}
    taken = host.names | {binding.name for binding in draft.imports} | _own(placement)
    for binding in _wanted(draft, needed, host, names):
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
    for name in sorted(_own(placement) & (host.names | BUILTINS)):
        other[name] = unique(name, taken | BUILTINS)
        taken |= {other[name]}
    return _statements(added), other


def _own(placement: Placement) -> frozenset[str]:
    """Module-level names that the draft brings along, its test function aside."""
    found = frozenset(name for helper in placement.helpers for name in bound_names(helper))
    return found | {placement.holder.name.value} if placement.holder is not None else found


def _wanted(draft: PythonDraft, needed: frozenset[str], host: Host, names: Names) -> list[Binding]:
    wanted = [binding for binding in draft.imports if binding.name in needed]
    return wanted + _missing(needed, draft, host.names, names)


def _missing(needed: frozenset[str], draft: PythonDraft, known: frozenset[str], names: Names) -> list[Binding]:
    """Imports for what the draft uses without saying where it comes from."""
    imported = {binding.name for binding in draft.imports}
    found: list[Binding] = []
    for name in sorted(needed - imported - known - BUILTINS):
        statement = names.provider(name) or (f"import {name}" if _well_known(name) else None)
        if statement is None:
            raise DraftRejected(f"it uses `{name}` without importing it")
        found.extend(import_bindings_of(statement))
    return found


def _well_known(name: str) -> bool:
    return name in sys.stdlib_module_names or name == "pytest"


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


def _written(host: Host, imports: Sequence[str], placement: Placement) -> str:
    """The host's lines with the new ones between them."""
    additions: dict[int, list[str]] = {}
    if imports:
        additions[host.after_imports] = _import_lines(host, imports)
    definitions = list(placement.helpers)
    if placement.case is not None:
        method = _method(placement.test, placement.case.indent, host.indent)
        additions.setdefault(placement.case.end, []).extend(["", *method])
    else:
        definitions.append(placement.holder or placement.test)
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
            new = additions[number] if parts != [""] else _without_leading_blank(additions[number])
            parts.extend(f"{each.removesuffix(chr(13))}{host.newline}" for each in new)
    return "".join(parts)


def _without_leading_blank(lines: list[str]) -> list[str]:
    while lines and not lines[0]:
        lines = lines[1:]
    return lines


def _shown(imports: Sequence[str], placement: Placement) -> str:
    nodes: list[Statement] = list(placement.nodes)
    pieces = ["\n".join(imports)] if imports else []
    pieces += [render([node]).strip("\n") for node in nodes]
    return "\n\n\n".join(pieces) + "\n"
