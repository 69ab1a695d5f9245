"""Put a drafted test into a Python file by adding lines only, so that nothing else in the file changes. Pure."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import dropwhile

import libcst as cst
import libcst.matchers as m

from bot.reproduction.language import DraftRejected, Names, first_free
from bot.reproduction.protocol import Injected
from bot.reproduction.python.draft import PythonDraft, bound_names, is_test, render
from bot.reproduction.python.host import Host, read_host
from bot.reproduction.python.names import BUILTINS, Binding, free_names, import_bindings

#: A docstring or ``pass`` in a class.
_IDLE = m.SimpleStatementLine([m.ZeroOrMore(m.Pass() | m.Expr(m.SimpleString()))])
_NO_PARAMETERS = m.Parameters(params=[], posonly_params=[], kwonly_params=[], star_arg=~m.Param(), star_kwarg=None)


def add_to(draft: PythonDraft, source: str, test_name: str | None, names: Names) -> Injected:
    """Add the test to the host.

    Raises DraftRejected if it does not fit there, or if one of its names means something else in the host.
    """
    host = read_host(source)
    taken_names = host.names | BUILTINS
    draft = _place(draft, host).tidied(
        first_free(test_name or draft.test.name.value, "", "_", taken_names.__contains__)
    )
    own_names = {name for helper in draft.helpers for name in bound_names(helper)}
    if draft.holder is not None:
        own_names.add(draft.holder.name.value)
    added = [
        binding
        for binding in _needed_imports(draft, host.names, names)
        if binding.origin not in host.imports.get(binding.name, ())
    ]
    clashes = own_names & taken_names | {binding.name for binding in added if not _room_for(binding, host)}
    if clashes:
        raise DraftRejected(f"`{min(clashes)}` means something else in the test file")
    imports = _statements(added)
    return Injected(content=_insert(host, imports, draft), name=draft.test_id, code=_render_code(imports, draft))


def to_new_file(draft: PythonDraft, test_name: str | None, names: Names) -> Injected:
    """Put the test into a new file. Raises DraftRejected if it uses an unknown name."""
    draft = draft.tidied(test_name or draft.test.name.value)
    code = _render_code(_statements(_needed_imports(draft, frozenset(), names)), draft)
    return Injected(content=code, name=draft.test_id, code=code)


def _place(draft: PythonDraft, host: Host) -> PythonDraft:
    """Adapt the draft to the host's style: functions beside functions, methods among methods.

    A method that uses ``self`` only moves into a class with the same base, which defines what ``self`` offers. If
    the host has none, the draft's own class is added.
    """
    if draft.holder is None:
        return _place_function(draft, host)
    plain = not draft.holder.decorators and not draft.holder.keywords
    if plain and all(is_test(statement) or m.matches(statement, _IDLE) for statement in draft.holder.body.body):
        if base := _base(draft.holder):
            case = host.case_for(render(draft.nodes), base)
            return replace(draft, holder=None, case=case) if case else draft
        if function := _as_function(draft.test):
            return _place_function(replace(draft, test=function, holder=None), host)
    return draft


def _place_function(draft: PythonDraft, host: Host) -> PythonDraft:
    # A decorator is run with the class, before the helpers that it may use are defined.
    if not host.only_unittest or draft.test.decorators:
        return draft
    case = host.case_for(render(draft.nodes), asynchronous=draft.test.asynchronous is not None)
    # unittest supports no parameters.
    if case is None or not m.matches(draft.test.params, _NO_PARAMETERS):
        return draft
    method = draft.test.with_changes(params=cst.Parameters(params=[cst.Param(cst.Name("self"))]))
    return replace(draft, test=method, case=case)


def _base(holder: cst.ClassDef) -> str:
    if not holder.bases:
        return ""
    node = ast.parse(cst.Module(body=[]).code_for_node(holder.bases[0].value), mode="eval").body
    return ast.unparse(node).rpartition(".")[2].removesuffix("object")


def _as_function(test: cst.FunctionDef) -> cst.FunctionDef | None:
    """Return a test method as a function, or None if it uses ``self``."""
    parameters = list(test.params.params)
    if not parameters or parameters[0].name.value != "self" or test.decorators:
        return None
    bare = test.with_changes(params=test.params.with_changes(params=parameters[1:]))
    return None if m.findall(bare.body, m.Name("self") | m.Name("super")) else bare


def _needed_imports(draft: PythonDraft, host_names: frozenset[str], names: Names) -> list[Binding]:
    """Return the draft's used imports, and imports for names that it uses without importing them."""
    needed = free_names(render(draft.nodes))
    bindings = [binding for binding in draft.imports if binding.name in needed]
    imported = {binding.name for binding in draft.imports}
    for name in sorted(needed - imported - host_names - BUILTINS):
        well_known = name in sys.stdlib_module_names or name == "pytest"
        statement = names.provider(name) or (f"import {name}" if well_known else None)
        if statement is None:
            raise DraftRejected(f"it uses `{name}` without importing it")
        bindings.extend(import_bindings(ast.parse(statement).body))
    return bindings


def _room_for(binding: Binding, host: Host) -> bool:
    if binding.name in BUILTINS:
        return False
    if binding.package:
        others = host.imports.get(binding.name, set())
        if others and all(len(origin) == 1 and origin[0].partition(".")[0] == binding.name for origin in others):
            return True
    return binding.name not in host.names


def _statements(bindings: Iterable[Binding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(binding.statement for binding in bindings))


def _insert(host: Host, imports: Sequence[str], draft: PythonDraft) -> str:
    """Return the host's text with the new lines."""
    additions: dict[int, list[str]] = {}
    if imports:
        additions[host.after_imports] = _import_lines(host, imports)
    definitions = list(draft.helpers)
    if draft.case is not None:
        # At its class's indentation; text within long strings is not indented.
        holder = cst.ClassDef(cst.Name("_"), cst.IndentedBlock([draft.test], indent=draft.case.indent))
        method = _lines(render([holder], host.indent))[1:]
        additions.setdefault(draft.case.end, []).extend(["", *method])
    else:
        definitions.append(draft.holder or draft.test)
    for node in definitions:
        additions.setdefault(host.end, []).extend(["", "", *_lines(render([node], host.indent))])
    return _merge(host, additions)


def _import_lines(host: Host, imports: Sequence[str]) -> list[str]:
    below = host.lines[host.after_imports :]
    if host.after_imports:
        # A blank line separates imports from a docstring or licence.
        above = host.lines[host.after_imports - 1].lstrip()
        apart = not above.startswith(("import ", "from ", ")")) and not host.imports
        return ["", *imports] if apart else list(imports)
    return [*imports, *([""] if below and below[0].strip() else [])]


def _lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


def _merge(host: Host, additions: dict[int, list[str]]) -> str:
    parts: list[str] = []
    for number, line in enumerate(("", *host.lines)):
        parts.append(line)
        if number in additions:
            if line and not line.endswith("\n"):
                parts.append(host.newline)
            new = additions[number] if parts != [""] else list(dropwhile(lambda row: not row, additions[number]))
            parts.extend(f"{row.removesuffix(chr(13))}{host.newline}" for row in new)
    return "".join(parts)


def _render_code(imports: Sequence[str], draft: PythonDraft) -> str:
    pieces = ["\n".join(imports)] if imports else []
    pieces += [render([node]).strip("\n") for node in draft.nodes]
    return "\n\n\n".join(pieces) + "\n"
