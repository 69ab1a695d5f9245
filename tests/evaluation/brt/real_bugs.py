"""Bugs of published packages: two neighbouring releases, the report, and right, wrong and passing tests.

Reports are in our own words, after the packages' change logs; every test was run on both releases. All releases
have wheels: nothing is built, so no set-up code of a stranger runs outside of the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """``gold`` fails on ``old`` and passes on ``new``; ``wrong`` fails on both; ``passing`` passes on both."""

    package: str
    old: str
    new: str
    report: str
    gold: str
    wrong: str
    passing: str
    exception: str | None
    """What ``gold`` fails with on the old release; None where it does not end."""

    @property
    def id(self) -> str:
        return f"{self.package}-{self.old}"


BUGS = (
    Bug(
        package="parse",
        old="1.20.1",
        new="1.20.2",
        report="A field name with a hyphen is not found\n\n"
        "`parse.parse('hello {my-name}', 'hello world')` gives None. Names of HTTP headers have hyphens, so the "
        "field should be named 'my-name', as it is with '{my_name}'.",
        gold="import parse\n\n\n"
        "def test_a_field_name_may_have_a_hyphen():\n"
        "    result = parse.parse('hello {my-name}', 'hello world')\n"
        "    assert result is not None\n"
        "    assert result.named == {'my-name': 'world'}\n",
        wrong="import parse\n\n\n"
        "def test_hyphen():\n"
        "    assert parse.search('{my-name}', 'hello').named == {'my_name': 'hello'}\n",
        passing="import parse\n\n\n"
        "def test_underscore():\n"
        "    assert parse.parse('hello {my_name}', 'hello world').named == {'my_name': 'world'}\n",
        exception="AssertionError",
    ),
    Bug(
        package="python-dotenv",
        old="0.19.1",
        new="0.19.2",
        report="set_key glues a new key to the last line\n\n"
        "When the file does not end with a newline (`a=b`), `set_key(path, 'c', 'd')` writes `a=bc='d'`. The new "
        "entry should stand on a line of its own.",
        gold="from unittest import TestCase\n\nimport dotenv\n\n\n"
        "class SetKeyTest(TestCase):\n"
        "    def test_a_new_key_starts_a_new_line(self):\n"
        "        with open('settings.env', 'w') as stream:\n"
        "            stream.write('a=b')\n"
        "        dotenv.set_key('settings.env', 'c', 'd')\n"
        "        self.assertEqual(dotenv.dotenv_values('settings.env'), {'a': 'b', 'c': 'd'})\n",
        wrong="import dotenv\n\n\n"
        "def test_set_key_of_a_missing_file():\n"
        "    dotenv.set_key('no/such/folder/settings.env', 'c', 'd')\n",
        passing="import dotenv\n\n\n"
        "def test_set_key():\n"
        "    open('settings.env', 'w').write('a=b\\n')\n"
        "    dotenv.set_key('settings.env', 'c', 'd')\n"
        "    assert dotenv.dotenv_values('settings.env') == {'a': 'b', 'c': 'd'}\n",
        exception="AssertionError",
    ),
    Bug(
        package="toml",
        old="0.10.0",
        new="0.10.1",
        report="Local times need spaces around them\n\n"
        "`toml.loads('t = 17:00:01')` works, `toml.loads('t=17:00:01')` raises TomlDecodeError: Invalid date or "
        "number. Both should give datetime.time(17, 0, 1).",
        gold="import datetime\n\nimport toml\n\n\n"
        "def test_a_local_time_is_read():\n"
        "    assert toml.loads('t=17:00:01') == {'t': datetime.time(17, 0, 1)}\n",
        wrong="import toml\n\n\ndef test_time():\n    assert toml.loads('t=17:00:01') == {'t': '17:00:01'}\n",
        passing="import toml\n\n\n"
        "def test_date():\n"
        "    assert toml.loads('t = 1979-05-27T07:32:00Z')['t'].year == 1979\n",
        exception="toml.decoder.TomlDecodeError",
    ),
    Bug(
        package="zipp",
        old="3.19.0",
        new="3.19.1",
        report="Endless loop on a name that starts with two slashes\n\n"
        "With an archive that has an entry `//one-slash.txt`, `zipp.Path(archive).iterdir()` never returns.",
        gold="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_a_name_with_two_slashes_can_be_listed():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('//one-slash.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()]\n",
        wrong="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_names():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('one.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()] == ['/one.txt']\n",
        passing="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_names():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('one.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()] == ['one.txt']\n",
        exception=None,
    ),
)
