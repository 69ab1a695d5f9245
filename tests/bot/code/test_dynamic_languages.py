# ruff: noqa: E501 - lines of code in other languages
"""Which code is shown beside a change in Python, TypeScript and JavaScript, and which namesakes are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.bot.code.test_context import surroundings

#: A file of this many further lines is not shown whole.
LONG = "\n" * 60


def shown(files: Mapping[str, str], path: str, new: str) -> str:
    """Return the context of a change whose new line is ``new``, which stands once in the file."""
    return surroundings(files, path, f"{new}  # old", new).within(6_000).text


def test_an_import_of_a_foreign_package_is_no_namesake() -> None:
    files = {
        "src/a.ts": "export function createElement(x: string) {\n  return x\n}\n",
        "src/u.ts": "import { createElement } from 'react'\nexport function show(x: string) {\n  return createElement(x)\n}\n"
        + LONG,
    }
    assert "src/a.ts" not in shown(files, "src/u.ts", "  return createElement(x)")
    assert "`show` calls" not in shown(files, "src/a.ts", "  return x")


def test_a_member_of_an_unknown_value_is_no_namesake() -> None:
    fake = "class FakeResponse:\n    def raise_for_status(self):\n        return 1\n"
    use = "import requests\ndef check(response):\n    response.raise_for_status(1)\n" + LONG
    assert "FakeResponse" not in shown(
        {"a/f.py": fake, "a/u.py": use}, "a/u.py", "    response.raise_for_status(1)"
    )
    assert "`check`" not in shown({"a/f.py": fake, "a/u.py": use}, "a/f.py", "        return 1")
    fake = "export class FakeXhr {\n  setRequestHeader(n) {\n    return n\n  }\n}\n"
    use = "export function send(xhr) {\n  xhr.setRequestHeader(1)\n}\n" + LONG
    assert "FakeXhr" not in shown({"a/f.js": fake, "a/u.js": use}, "a/u.js", "  xhr.setRequestHeader(1)")


def test_a_member_of_an_unknown_struct_is_no_function() -> None:
    files = {
        "src/net.c": "void close(int fd)\n{\n    drop(fd);\n}\n",
        "src/u.c": "int use(struct ext *s)\n{\n    s->close(s, 1);\n}\nint more(void)\n{\n    sock->close(2);\n}\n"
        + LONG,
    }
    assert "src/net.c" not in shown(files, "src/u.c", "    s->close(s, 1);")
    assert "src/net.c" not in shown(files, "src/u.c", "    sock->close(2);")
    assert "`use`" not in shown(files, "src/net.c", "    drop(fd);")


@pytest.mark.parametrize("name", ["Queue", "Stream", "Record", "VectorStore", "HashRing", "LinkedList"])
def test_a_class_of_the_repository_is_no_container(name: str) -> None:
    own = f"export class {name} {{\n  push(item) {{\n    return item\n  }}\n}}\n" + LONG
    use = (
        f"import {{ {name} }} from './q'\nexport function fresh() {{\n  const q = new {name}()\n  q.push(1)\n}}\n"
    )
    assert "`fresh` calls `push`" in shown({"src/q.js": own, "src/u.js": use}, "src/q.js", "    return item")
    foreign = use.replace("./q", "queue")
    assert "`fresh`" not in shown({"src/q.js": own, "src/u.js": foreign}, "src/q.js", "    return item")
    elements = "import { Item } from './i'\nexport function all(items: Array<Item>, more: Item[]) {\n  items.push(1)\n  more.push(2)\n}\n"
    item = "export class Item {\n  push(item) {\n    return item\n  }\n}\n" + LONG
    assert "`all`" not in shown({"src/i.ts": item, "src/u.ts": elements}, "src/i.ts", "    return item")


def test_a_module_of_javascript_calls_what_it_exports() -> None:
    files = {
        "lib/u.js": "exports.one = function (n) {\n  return n\n}\nexports.all = function (n) {\n  return exports.one(n)\n}\n"
        + LONG,
        "lib/v.js": "exports.one = function (n) {\n  return 0\n}\n",
    }
    text = shown(files, "lib/u.js", "  return exports.one(n)")
    assert "`one`, called by `all`" in text
    assert "lib/v.js" not in text
