"""Java behind the language seam: JUnit test methods, read and placed with javalang (Java 8 syntax).

What is here reads drafts, puts them into test classes and normalises them. Building and running Java is the
repository's own test command; whether it fits the harness (files as arguments, a JUnit report) is up to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from bot.errors import OperatorError
from bot.reproduce.language import Definition, DraftRejected, Injected, Names, NoNames

_TEST_FILE = re.compile(r"(Test\w*|\w*(?:Test|Tests|TestCase))\.java")
_FENCED = re.compile(r"^(?:```|~~~)[ \t]*(?:java)?[ \t]*\n(.*?)^(?:```|~~~)", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+(static[ \t]+)?([\w.]+(?:\.\*)?)[ \t]*;[ \t]*$", re.MULTILINE)
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+[\w.]+[ \t]*;[ \t]*$", re.MULTILINE)
_TYPE = re.compile(r"^(?:public |final |abstract )*(?:class|interface|enum) +(\w+)", re.MULTILINE)
_METHOD = re.compile(r"^[ \t]+(?:[\w<>\[\], ?@]+[ \t]+)?(\w+)\([^;{)]*\)[^;{]*\{", re.MULTILINE)
_OPPOSITES = {
    "assertEquals": "assertNotEquals",
    "assertTrue": "assertFalse",
    "assertNull": "assertNotNull",
    "assertSame": "assertNotSame",
}
_OPPOSITES |= {negative: positive for positive, negative in _OPPOSITES.items()}
_PROBE = "import org.junit.Test;\n\npublic class TestProbe {\n    @Test\n    public void probe() {\n    }\n}\n"
MAX_LINES = 60


class Java:
    """One test method at a time, as LIBRO drafts them."""

    name = "java"
    suffixes = frozenset({".java"})

    def __init__(self) -> None:
        """Raises OperatorError where the extra ``java`` is not installed."""
        try:
            import javalang
        except ImportError:
            raise OperatorError("Java needs the extra: pip install 'bouncer-bot[java]'") from None
        self._javalang: ModuleType = javalang

    def is_test_file(self, path: str) -> bool:
        return _TEST_FILE.fullmatch(PurePosixPath(path).name) is not None

    def names(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> Names:
        # An unknown type may be of the test's own package, which needs no import: a compiler has to tell.
        return NoNames()

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Definition, ...]:
        wanted = [name.rpartition(".")[2] for name in names]
        found: list[Definition] = []
        for path, text in sorted(sources.items()):
            for pattern in (_TYPE, _METHOD):
                for match in pattern.finditer(text):
                    if match[1] in wanted:
                        line = text.count("\n", 0, match.start()) + 1
                        shown = "\n".join(text.splitlines()[line - 1 : line - 1 + MAX_LINES])
                        found.append(Definition(name=match[1], path=path, line=line, source=shown))
        return tuple(sorted(found, key=lambda each: (wanted.index(each.name), each.path, each.line))[:limit])

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        try:
            methods = self._methods(self._parse(source))
        except DraftRejected:
            return ()
        lines = source.splitlines()
        return tuple((m.name, "\n".join(lines[m.position.line - 1 :])[:3_000]) for m in methods)

    def check(self, draft: str) -> None:
        self._take_apart(draft)

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        imports, method, own = self._take_apart(draft)
        tree = self._parse(host)
        if not tree.types:
            raise DraftRejected("the test file holds no class")
        name = _unique(test_name or own, {each.value for each in self._tokens(host)})
        method = re.sub(rf"\b{re.escape(own)}(?=\s*\()", name, method, count=1)
        added = _missing_imports(imports, host)
        newline = "\r\n" if "\r\n" in host else "\n"
        body = f"{newline}{_indented(method, _indent_of(host), newline)}{newline}"
        closing = self._closing_brace(host)
        content = _with_imports(host[:closing] + body + host[closing:], added, newline)
        self._parse(content)
        shown = "\n".join((*added, *([""] if added else []), method)) + "\n"
        return Injected(content=content, test_id=f"{tree.types[0].name}::{name}", code=shown)

    def new_file(self, draft: str, test_name: str | None, names: Names) -> Injected:
        imports, method, own = self._take_apart(draft)
        name = test_name or own
        method = re.sub(rf"\b{re.escape(own)}(?=\s*\()", name, method, count=1)
        class_name = f"{name[:1].upper()}{name[1:]}"
        class_name = class_name if class_name.startswith("Test") else f"Test{class_name}"
        head = "\n".join(imports) + ("\n\n" if imports else "")
        content = f"{head}public class {class_name} {{\n{_indented(method, '    ', chr(10))}\n}}\n"
        return Injected(content=content, test_id=f"{class_name}::{name}", code=content)

    def new_path(self, beside: str | None, stem: str, taken: Mapping[str, str]) -> str:
        folder = PurePosixPath(beside).parent if beside else PurePosixPath("src/test/java")
        name = f"{stem[:1].upper()}{stem[1:]}"
        return str(folder / f"{name if name.startswith('Test') else f'Test{name}'}.java")

    def syntax(self, draft: str) -> str:
        _, method, name = self._take_apart(draft)
        return " ".join("test" if token.value == name else token.value for token in self._tokens(method))

    def length(self, code: str) -> int:
        try:
            return len(self._tokens(code))
        except DraftRejected:
            return len(code.split())

    def probe(self) -> tuple[str, str]:
        return _PROBE, "TestProbe::probe"

    def inverted(self, draft: str) -> str | None:
        imports, method, _ = self._take_apart(draft)
        found = list(re.finditer(rf"\b({'|'.join(_OPPOSITES)})(?=\s*\()", method))
        if not found:
            return None
        last = found[-1]
        turned = method[: last.start()] + _OPPOSITES[last[1]] + method[last.end() :]
        statics = [line.replace(f".{last[1]};", f".{_OPPOSITES[last[1]]};") for line in imports]
        return "\n".join((*statics, turned)) + "\n"

    def _take_apart(self, draft: str) -> tuple[list[str], str, str]:
        """Import statements, the test method's text, and its name. Raises DraftRejected."""
        blocks: list[str] = _FENCED.findall(draft)
        text = (blocks[0] if blocks else draft).replace("\r\n", "\n")
        imports = [match[0].strip() for match in _IMPORT.finditer(text)]
        rest = _PACKAGE.sub("", _IMPORT.sub("", text)).strip()
        if not rest:
            raise DraftRejected("it defines no test: a method")
        inner = (
            rest
            if re.search(r"\bclass\s+\w+[^{;]*\{", rest.partition("(")[0])
            else f"class Drafted {{\n{rest}\n}}"
        )
        tests = self._methods(self._parse(inner))
        if not tests:
            raise DraftRejected("it defines no test: a method with @Test, or whose name starts with test")
        return imports, self._text_of(inner, tests[0]), tests[0].name

    def _parse(self, text: str) -> Any:
        try:
            return self._javalang.parse.parse(text)
        except (self._javalang.parser.JavaSyntaxError, self._javalang.tokenizer.LexerError) as error:
            raise DraftRejected(f"it does not parse: {getattr(error, 'description', None) or error}") from error
        except (StopIteration, RecursionError, TypeError, AttributeError, IndexError) as error:
            # How javalang gives up on what it does not know, text that ends too early among it.
            raise DraftRejected("it does not parse, or uses syntax newer than Java 8") from error

    def _tokens(self, text: str) -> list[Any]:
        try:
            return list(self._javalang.tokenizer.tokenize(text))
        except (self._javalang.tokenizer.LexerError, StopIteration) as error:
            raise DraftRejected(f"it does not parse: {error}") from error

    def _methods(self, tree: Any) -> list[Any]:
        """The test methods of the first class."""
        if not tree.types:
            return []
        methods = getattr(tree.types[0], "methods", [])
        tests = [m for m in methods if any(a.name == "Test" for a in m.annotations or ())]
        return tests or [m for m in methods if m.name.startswith("test")]

    def _text_of(self, text: str, method: Any) -> str:
        """From its first annotation or modifier to its closing brace."""
        tokens = self._tokens(text)
        starts = _line_starts(text)
        first = next(i for i, t in enumerate(tokens) if t.position == method.position)
        while first > 0 and tokens[first - 1].value not in ("{", "}", ";"):
            first -= 1
        depth, last = 0, first
        for index in range(first, len(tokens)):
            depth += {"{": 1, "}": -1}.get(tokens[index].value, 0)
            if tokens[index].value == "}" and depth == 0:
                last = index
                break
        begin = starts[tokens[first].position.line - 1] + tokens[first].position.column - 1
        end = starts[tokens[last].position.line - 1] + tokens[last].position.column
        return text[begin:end]

    def _closing_brace(self, text: str) -> int:
        """Where the first class ends: just before its closing brace."""
        starts = _line_starts(text)
        depth = 0
        for token in self._tokens(text):
            depth += {"{": 1, "}": -1}.get(token.value, 0)
            if token.value == "}" and depth == 0:
                line, column = int(token.position.line), int(token.position.column)
                return starts[line - 1] + column - 1
        raise DraftRejected("the test file's class has no end")


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _unique(name: str, taken: set[str]) -> str:
    number, chosen = 2, name
    while chosen in taken:
        chosen, number = f"{name}{number}", number + 1
    return chosen


def _indent_of(host: str) -> str:
    match = re.search(r"^([ \t]+)\S", host[host.find("{") :], re.MULTILINE)
    return match[1] if match else "    "


def _indented(method: str, indent: str, newline: str) -> str:
    lines = method.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    inner = [line[margin:] if line[:margin].isspace() or not margin else line for line in lines[1:]]
    return newline.join(f"{indent}{line}".rstrip() for line in (lines[0], *inner))


def _missing_imports(imports: Sequence[str], host: str) -> list[str]:
    """The statements that the host lacks. Raises DraftRejected where it has another type of that name."""
    present = {(bool(match[1]), match[2]) for match in _IMPORT.finditer(host)}
    simple = {name.rpartition(".")[2]: name for static, name in present if not static and not name.endswith("*")}
    added: list[str] = []
    for statement in dict.fromkeys(imports):
        match = _IMPORT.match(statement)
        assert match is not None
        static, name = bool(match[1]), match[2]
        if (static, name) in present:
            continue
        short = name.rpartition(".")[2]
        if not static and simple.get(short, name) != name:
            raise DraftRejected(f"`{short}` means {simple[short]} in the test file")
        added.append(statement)
    return added


def _with_imports(host: str, added: Sequence[str], newline: str) -> str:
    if not added:
        return host
    anchors = [*_IMPORT.finditer(host)] or [*_PACKAGE.finditer(host)]
    at = anchors[-1].end() if anchors else 0
    block = newline.join(added)
    return f"{host[:at]}{newline}{block}{host[at:]}" if at else f"{block}{newline}{newline}{host}"
