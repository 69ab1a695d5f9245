"""Java tests: read and place test methods of JUnit 3, 4 and 5 by their syntax trees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.reproduction.java.syntax import TYPES, Node, field_text, parse, simple, text_of, walk
from bot.reproduction.language import DraftRejected, Excerpt, Names, first_free
from bot.reproduction.protocol import Injected

_TEST_FILE = re.compile(r"(Test\w*|\w*(?:Test|Tests|TestCase))\.java")
_FENCED = re.compile(r"^(?:```|~~~)[ \t]*(?:java)?[ \t]*\n(.*?)^(?:```|~~~)", re.DOTALL | re.MULTILINE)
_TEST_ANNOTATIONS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory"})
_ASSERTION = re.compile(r"(?<![\w.])(assert[A-Z]\w*|fail)(?=\s*\()")
_OPPOSITES = {
    "assertEquals": "assertNotEquals",
    "assertTrue": "assertFalse",
    "assertNull": "assertNotNull",
    "assertSame": "assertNotSame",
}
_OPPOSITES |= {negative: positive for positive, negative in _OPPOSITES.items()}
#: JUnit 4's names and the equivalents of JUnit 5. A message argument in the wrong place is left to the compiler.
_JUNIT5_NAMES = {
    "org.junit.Test": "org.junit.jupiter.api.Test",
    "org.junit.Assert": "org.junit.jupiter.api.Assertions",
    "org.junit.Before": "org.junit.jupiter.api.BeforeEach",
    "org.junit.After": "org.junit.jupiter.api.AfterEach",
    "org.junit.Ignore": "org.junit.jupiter.api.Disabled",
}
_PROBE = "@Test\npublic void probe() {\n}"
MAX_LINES = 60


@dataclass(frozen=True)
class JavaNames:
    """The repository's JUnit version and the packages of its types."""

    junit5: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    """Package by folder."""
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Packages by the name of an own type."""

    def provider(self, name: str) -> str | None:
        packages = self.types.get(name, frozenset())
        package = next(iter(packages), "")
        return f"import {package}.{name};" if len(packages) == 1 and package else None

    def package_at(self, path: str) -> str:
        """Return the package of a file: that of its neighbours, or by its folder below the source root."""
        folder = str(PurePosixPath(path).parent)
        after = re.search(r"(?:^|/)src/(?:test|main)/java(?:/(.*))?$", folder)
        return self.packages.get(folder, (after[1] or "").replace("/", ".") if after else "")


class Helper(NamedTuple):
    """A method, field or type that a test uses."""

    name: str
    text: str


@dataclass(frozen=True)
class JavaDraft:
    """The parts of a draft: its imports, its test method, and what else of its class that uses."""

    imports: tuple[str, ...]
    method: str
    name: str
    helpers: tuple[Helper, ...] = ()

    def rename(self, name: str) -> str:
        return re.sub(rf"\b{re.escape(self.name)}(?=\s*\()", name, self.method, count=1)


class Java:
    """One test method at a time, as LIBRO drafts them."""

    name = "java"
    suffixes = frozenset({".java"})

    def is_test_file(self, path: str) -> bool:
        return _TEST_FILE.fullmatch(PurePosixPath(path).name) is not None or (
            "/src/test/" in f"/{path}" and path.endswith(".java")
        )

    def names(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> JavaNames:
        uses_jupiter = Counter("jupiter" in text for text in tests.values() if "org.junit" in text)
        packages: dict[str, str] = {}
        types: dict[str, set[str]] = {}
        for path, text in sources.items():
            match = re.search(r"^\s*package\s+([\w.]+)\s*;", text, re.MULTILINE)
            package = match[1] if match else ""
            packages.setdefault(str(PurePosixPath(path).parent), package)
            types.setdefault(PurePosixPath(path).stem, set()).add(package)
        package_sets = {name: frozenset(own_packages) for name, own_packages in types.items()}
        return JavaNames(junit5=uses_jupiter[True] > uses_jupiter[False], packages=packages, types=package_sets)

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Excerpt, ...]:
        order = {name.rpartition(".")[2]: place for place, name in reversed(list(enumerate(names)))}
        excerpts: list[Excerpt] = []
        for path, text in sorted(sources.items()):
            if any(name in text for name in order):
                for node in walk(parse(text)):
                    if node.type in ("method_declaration", *TYPES) and field_text(node) in order:
                        excerpt_text = "\n".join(text_of(node).splitlines()[:MAX_LINES])
                        line = node.row + 1
                        excerpts.append(Excerpt(name=field_text(node), path=path, line=line, source=excerpt_text))
        return tuple(
            sorted(excerpts, key=lambda excerpt: (order[excerpt.name], excerpt.path, excerpt.line))[:limit]
        )

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        tree = parse(source)
        return tuple((name, text_of(method)[:3_000]) for name, method in _tests(tree).items())

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        parts = _take_apart(draft)
        tree = parse(host)
        type_node = _test_class(tree)
        body = type_node.child_by_field_name("body") if type_node else None
        if type_node is None or body is None or tree.has_error:
            raise DraftRejected("the test file holds no class, or cannot be read")
        junit3 = any(simple(node) == "TestCase" for node in walk(type_node) if node.type == "type_identifier")
        junit3 = junit3 and not any(
            _annotations(node) & _TEST_ANNOTATIONS for node in walk(tree) if node.type == "method_declaration"
        )
        words = frozenset(re.findall(r"\w+", host))
        name = first_free(test_name or parts.name, "", "", words.__contains__)
        method = parts.rename(name)
        if junit3:
            method = re.sub(r"@Test\b(?:\([^)]*\))?\s*", "", method)
        # A draft may repeat what it was shown of the file.
        own = {name for name, _ in _members(body)}
        members = [method, *(helper.text for helper in parts.helpers if helper.name not in own)]
        version = "" if junit3 else _junit_version(host, names)
        added = _missing(_imports_of(parts, "\n".join(members), names, host, version), tree)
        newline = "\r\n" if "\r\n" in host else "\n"
        data = host.encode("utf-8", "surrogatepass")
        closing = body.end_byte - 1
        indent = re.search(r"^([ \t]+)\S", host[host.find("{") :], re.MULTILINE)
        block = f"{newline}{_indented(members, indent[1] if indent else '    ', newline)}{newline}".encode()
        content = (data[:closing] + block + data[closing:]).decode("utf-8", "surrogatepass")
        code = "\n".join((*added, *([""] if added else []), "\n\n".join(members))) + "\n"
        return Injected(
            content=_with_imports(content, added, newline), name=f"{_class_of(tree)}::{name}", code=code
        )

    def new_file(self, draft: str, test_name: str | None, names: Names, path: str) -> Injected:
        parts = _take_apart(draft)
        name = test_name or parts.name
        members = [parts.rename(name), *(helper.text for helper in parts.helpers)]
        package = names.package_at(path) if isinstance(names, JavaNames) else ""
        class_name = PurePosixPath(path).stem
        imports = _imports_of(parts, "\n".join(members), names, f"package {package};", _junit_version("", names))
        head = (f"package {package};\n\n" if package else "") + "\n".join(imports) + ("\n\n" if imports else "")
        content = f"{head}public class {class_name} {{\n{_indented(members, '    ', chr(10))}\n}}\n"
        full = f"{package}.{class_name}" if package else class_name
        return Injected(content=content, name=f"{full}::{name}", code=content)

    def new_path(self, beside: str | None, stem: str, existing: Mapping[str, str]) -> str:
        folder = PurePosixPath(beside).parent if beside else PurePosixPath("src/test/java")
        name = f"{stem[:1].upper()}{stem[1:]}"
        return first_free(f"{folder}/{name.removesuffix('Test')}", "Test.java", "", existing.__contains__)

    def syntax(self, draft: str) -> str:
        parts = _take_apart(draft)
        code = "\n".join((parts.method, *(helper.text for helper in parts.helpers)))
        return " ".join("test" if word == parts.name else word for word in _words(code))

    def length(self, code: str) -> int:
        return len(_words(code))

    def probe(self, path: str, names: Names) -> tuple[str, str]:
        file = self.new_file(_PROBE, None, names, path)
        return file.content, file.name

    def invert(self, draft: str) -> str | None:
        parts = _take_apart(draft)
        assertions = list(re.finditer(rf"\b({'|'.join(_OPPOSITES)})(?=\s*\()", parts.method))
        if not assertions:
            return None
        last = assertions[-1]
        inverted = parts.method[: last.start()] + _OPPOSITES[last[1]] + parts.method[last.end() :]
        statics = [line.replace(f".{last[1]};", f".{_OPPOSITES[last[1]]};") for line in parts.imports]
        return "\n".join((*statics, inverted, *(helper.text for helper in parts.helpers))) + "\n"


def _take_apart(draft: str) -> JavaDraft:
    """Split a draft into its parts. Raises DraftRejected if it does not parse or contains no test."""
    blocks: list[str] = _FENCED.findall(draft)
    text = (blocks[0] if blocks else draft).replace("\r\n", "\n")
    tree = parse(text)
    if text.strip() and not tree.children:
        raise DraftRejected("it cannot be read in time")
    imports = tuple(text_of(node).strip() for node in tree.children if node.type == "import_declaration")
    if _test_class(tree) is None:
        rest = re.sub(r"^[ \t]*(?:import|package)\s[^;]*;[ \t]*$", "", text, flags=re.MULTILINE).strip()
        if not rest:
            raise DraftRejected("it defines no test: a method")
        tree = parse(f"class Drafted {{\n{rest}\n}}")
    if tree.has_error:
        bad = next((node for node in walk(tree) if node.is_broken), tree)
        raise DraftRejected(f"it does not parse near `{text_of(bad)[:80] or text_of(bad.parent)[:80]}`")
    tests = _tests(tree)
    if not tests:
        raise DraftRejected("it defines no test: a method with @Test, or whose name starts with test")
    test = next(iter(tests.values()))
    return JavaDraft(imports, text_of(test), field_text(test), _helpers(test))


def _helpers(test: Node) -> tuple[Helper, ...]:
    """Return the members around a test that it uses, itself or through others, in the order of the text."""
    members: list[tuple[str, Node]] = []
    node: Node | None = test
    while node is not None:
        members += _members(node)
        node = node.parent
    used: dict[int, Helper] = {}
    waiting = [text_of(test)]
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        for name, member in members:
            is_around = member.start_byte <= test.start_byte < member.end_byte
            if name in words and member.start_byte not in used and not is_around:
                used[member.start_byte] = Helper(name, text_of(member))
                waiting.append(text_of(member))
    return tuple(helper for _, helper in sorted(used.items()))


def _members(body: Node) -> list[tuple[str, Node]]:
    """Return the methods without a test's annotation, the fields and the types of a class's body, by name."""
    members: list[tuple[str, Node]] = []
    for member in body.children if body.type.endswith("_body") else ():
        if member.type == "field_declaration":
            names = [field_text(child) for child in member.children if child.type == "variable_declarator"]
            members += [(name, member) for name in names]
        elif member.type in TYPES or (
            member.type == "method_declaration" and not _annotations(member) & _TEST_ANNOTATIONS
        ):
            members.append((field_text(member), member))
    return members


def _tests(tree: Node) -> dict[str, Node]:
    """Return the test methods by name: ``org.x.ATest::a``, and ``org.x.ATest$B::c`` of a class in it."""
    type_node = _test_class(tree)
    return {} if type_node is None else _tests_in(type_node, _class_of(tree))


def _tests_in(type_node: Node, class_name: str) -> dict[str, Node]:
    """Return the annotated methods of a class and of those in it, else its own methods named ``test...``."""
    annotated: dict[str, Node] = {}
    others: dict[str, Node] = {}
    classes = [(class_name, type_node)]
    for name, node in classes:  # grows: hostile code nests deeper than Python recurses
        body = node.child_by_field_name("body")
        for member in body.children if body else ():
            if member.type in TYPES:
                classes.append((f"{name}${field_text(member)}", member))
            elif member.type == "method_declaration" and _annotations(member) & _TEST_ANNOTATIONS:
                annotated.setdefault(f"{name}::{field_text(member)}", member)
            elif member.type == "method_declaration" and node is type_node:
                others.setdefault(f"{name}::{field_text(member)}", member)
    return annotated or {name: method for name, method in others.items() if field_text(method).startswith("test")}


def _annotations(method: Node) -> set[str]:
    return {
        field_text(annotation).rpartition(".")[2]
        for modifiers in method.children
        if modifiers.type == "modifiers"
        for annotation in modifiers.children
        if "annotation" in annotation.type
    }


def _test_class(tree: Node) -> Node | None:
    """Return the first class with tests, else the first class."""
    types = [node for node in tree.children if node.type in TYPES]
    return max(types, key=lambda node: bool(_tests_in(node, "")), default=None)


def _class_of(tree: Node) -> str:
    """Return the full name of the class of the tests."""
    package = next(
        (text_of(node)[7:].strip(" ;\n") for node in tree.children if node.type == "package_declaration"), ""
    )
    type_node = _test_class(tree)
    return ".".join(part for part in (package, field_text(type_node) if type_node else "") if part)


def _words(code: str) -> list[str]:
    return [
        text_of(node)
        for node in walk(parse(f"class Drafted {{ {code} }}" if " class " not in f" {code}" else code))
        if not node.children and "comment" not in node.type
    ]


def _junit_version(host: str, names: Names) -> str:
    """Return ``4`` or ``5``: the JUnit version of the file, else of the repository."""
    if "org.junit.jupiter" in host:
        return "5"
    if "org.junit." in host:
        return "4"
    return "5" if isinstance(names, JavaNames) and names.junit5 else "4"


def _imports_of(parts: JavaDraft, method: str, names: Names, host: str, version: str) -> list[str]:
    """Return the draft's imports for the host's JUnit, plus missing ones that the repository knows."""
    statements = list(parts.imports)
    for junit4, junit5 in _JUNIT5_NAMES.items():
        old, new = (junit4, junit5) if version == "5" else (junit5, junit4)
        statements = [re.sub(rf"(?<= ){re.escape(old)}(?=[.;])", new, statement) for statement in statements]
    package = re.search(r"^\s*package\s+([\w.]*)\s*;", host, re.MULTILINE)
    own = package[1] if package else ""
    for name in dict.fromkeys(re.findall(r"\b[A-Z]\w*", method)):
        statement = names.provider(name)
        if statement and statement != f"import {own}.{name};" and not _is_imported(name, statements):
            statements.append(statement)
    if version:
        test, asserts = ("org.junit.Test", "org.junit.Assert")
        if version == "5":
            test, asserts = _JUNIT5_NAMES[test], _JUNIT5_NAMES[asserts]
        lines = (*statements, *host.splitlines())
        if re.search(r"@Test\b", method) and not _is_imported("Test", lines):
            statements.insert(0, f"import {test};")
        if not any("Assert" in line and line.rstrip().endswith("*;") for line in lines):
            calls = dict.fromkeys(_ASSERTION.findall(method))
            statements += [f"import static {asserts}.{name};" for name in calls if not _is_imported(name, lines)]
    return list(dict.fromkeys(statements))


def _is_imported(name: str, statements: Sequence[str]) -> bool:
    return any(statement.rstrip().endswith((f".{name};", f" {name};")) for statement in statements)


def _indented(members: Sequence[str], indent: str, newline: str) -> str:
    """Indent members of a class, with a blank line between them."""
    indented: list[str] = []
    for member in members:
        lines = member.split("\n")
        margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
        inner = [line[margin:] if line[:margin].isspace() or not margin else line for line in lines[1:]]
        indented.append(newline.join(f"{indent}{line}".rstrip() for line in (lines[0], *inner)))
    return (newline * 2).join(indented)


def _missing(imports: Sequence[str], tree: Node) -> list[str]:
    """Return the imports that the host lacks. Raises DraftRejected if it has another type of that name."""
    present = [" ".join(text_of(node).split()) for node in tree.children if node.type == "import_declaration"]
    simple_names = {
        statement[:-1].rpartition(".")[2]: statement for statement in present if " static " not in statement
    }
    added: list[str] = []
    for statement in (" ".join(line.split()) for line in imports):
        short = statement[:-1].rpartition(".")[2]
        if statement in present or (f"{statement[:-1].rpartition('.')[0]}.*;" in present):
            continue
        if " static " not in statement and short != "*" and short in simple_names:
            raise DraftRejected(f"`{short}` means {simple_names[short][7:-1]} in the test file")
        added.append(statement)
    return added


def _with_imports(host: str, added: Sequence[str], newline: str) -> str:
    if not added:
        return host
    anchors = [node for node in parse(host).children if node.type in ("import_declaration", "package_declaration")]
    block = newline.join(added)
    if not anchors:
        return f"{block}{newline}{newline}{host}"
    data = host.encode("utf-8", "surrogatepass")
    at = anchors[-1].end_byte
    gap = newline * (2 if anchors[-1].type == "package_declaration" else 1)
    return (data[:at] + f"{gap}{block}".encode() + data[at:]).decode("utf-8", "surrogatepass")


def tests_by_text(text: str) -> dict[str, str] | None:
    """Return the tests' tokens by name, or None if the file cannot be parsed."""
    tree = parse(text)
    if tree.has_error:
        return None
    return {name: " ".join(_words(text_of(method))) for name, method in _tests(tree).items()}
