"""All that is imported is declared, what is declared is bounded and locked, and a lock names no place."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bot.sandbox.protocol import IMAGE

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = ("requirements.txt", "requirements-image.txt", "requirements-build.txt")
OWN = {"bot", "evaluation", "tests"}
#: Files that people read, and that print what people read.
TEXT = {".md", ".py", ".yml", ".html", ".jinja", ".txt", ".sh"}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {plain(re.split(r"[\[<>=~!; ]", requirement)[0]) for requirement in requirements}


BASE = names(PROJECT["dependencies"])
EXTRAS = {
    extra: names(requirements) - {"bouncer-bot"}
    for extra, requirements in PROJECT["optional-dependencies"].items()
}


def imported(folder: str) -> dict[str, str]:
    """Foreign top-level modules that are imported anywhere in a folder, each with a file that does it."""
    modules_by_file: dict[str, str] = {}
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in OWN:
                    modules_by_file[top] = str(file.relative_to(ROOT))
    return modules_by_file


@pytest.mark.parametrize(
    ("folder", "extras"), [("bot", {"tracing"}), ("evaluation", {"evaluation"}), ("tests", set(EXTRAS))]
)
def test_what_is_imported_is_declared(folder: str, extras: set[str]) -> None:
    declared = BASE.union(*(EXTRAS[extra] for extra in extras))
    distributions = packages_distributions()
    undeclared = {
        f"{file}: {module}"
        for module, file in imported(folder).items()
        if not declared & {plain(name) for name in distributions.get(module, [module])}
    }
    assert not undeclared


def test_every_dependency_has_an_upper_bound() -> None:
    every = [
        *PROJECT["dependencies"],
        *(requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra),
    ]
    unbounded = [
        requirement
        for requirement in every
        if not re.search(r"<\d|~=|==", requirement) and not requirement.startswith("bouncer-bot[")
    ]
    assert not unbounded


def locked(file: str) -> set[str]:
    text = (ROOT / ".ci" / file).read_text()
    return {plain(name) for name in re.findall(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==", text, re.MULTILINE)}


def test_the_locks_hold_what_is_declared() -> None:
    assert not BASE.union(*EXTRAS.values()) - locked("requirements.txt"), "run: .ci/lock"
    assert not BASE.union(EXTRAS["tracing"]) - locked("requirements-image.txt"), "run: .ci/lock"


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_has_a_hash_for_everything_and_names_no_place(file: str) -> None:
    text = (ROOT / ".ci" / file).read_text()
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==\S+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert "/" not in text


def test_the_image_and_ci_install_from_the_locks() -> None:
    assert "--require-hashes -r .ci/requirements.txt" in (ROOT / ".ci" / "run").read_text()
    image = (ROOT / "Dockerfile").read_text()
    assert "--require-hashes --prefix=/install -r .ci/requirements-image.txt" in image
    installs = [line for line in image.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installs)


def test_images_and_actions_are_pinned_by_digest_and_commit() -> None:
    compose = (ROOT / "compose.yml").read_text()
    images = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    images += re.findall(r"^\s*image: (\S+)", compose, re.MULTILINE)
    images.append(IMAGE)
    assert len(images) == 3
    for image in images:
        assert re.fullmatch(r"[a-z]+:[0-9][\w.-]+@sha256:[0-9a-f]{64}", image), image
    actions = re.findall(r"uses: (\S+)(.*)", (ROOT / "action.yml").read_text())
    assert actions
    for action, comment in actions:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), comment


@pytest.mark.parametrize("answer", ["sha256:" + "a1" * 32, "latest", ""])
def test_the_image_is_built_from_a_digest_or_not_at_all(tmp_path: Path, answer: str) -> None:
    """A stand-in for docker writes down what it is asked; a copy of the project is built with it."""
    (tmp_path / ".ci").mkdir()
    for name in ("Dockerfile", ".ci/image"):
        shutil.copy(ROOT / name, tmp_path / name)
    for program, text in {
        "bin/docker": f'echo "$@" >>asked; [ "$1" = build ] || echo {answer}',
        ".venv/bin/cyclonedx-py": 'echo "$@" >>asked',
    }.items():
        (tmp_path / program).parent.mkdir(parents=True)
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        [tmp_path / ".ci" / "image", "bouncer:1"],
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    requests = (tmp_path / "asked").read_text()
    if answer.startswith("sha256:"):
        assert f"build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@{answer} --tag bouncer:1 ." in requests
        assert "-o sbom.json" in requests
        assert answer in done.stdout
    else:
        assert done.returncode == 1
        assert "has no digest" in done.stderr
        assert "build --build-arg" not in requests


def test_no_page_or_hint_installs_an_unreleased_package_by_name() -> None:
    """The name is free in package indexes: a stranger's package would run beside the App's key."""
    folders = [ROOT / name for name in ("docs", "bot", "evaluation", ".ci", ".github")]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    pages = {*ROOT.glob("*.*"), ROOT / "Dockerfile", *files}
    by_name = re.compile(
        r"(?:\b(?:pip3?|pipx|uv|uvx)\b[^\n]*|^\s*)['\"]?\bbouncer-bot\b(?!`? in a package index)", re.M
    )
    texts = {file: file.read_text("utf-8") for file in pages if file.suffix in TEXT or file.name == "Dockerfile"}
    assert len(texts) > 100
    assert [str(file.relative_to(ROOT)) for file, text in texts.items() if by_name.search(text)] == []


#: Stand-ins for the system's programs: everything they are asked is written down.
MACHINE = {
    "id": "echo 0",
    "sleep": "",
    "dpkg-query": '[ "$3" = slirp4netns ] || echo installed',
    "apt-get": 'echo "apt-get $*" >>asked; [ "$(grep -c apt asked)" != 1 ]',
    "python3": """\
if [ "$2" = venv ]; then
    mkdir -p .venv/bin
    printf '#!/bin/sh\\necho "pip $*" >>asked; [ "$(grep -c ^pip asked)" != 1 ]' >.venv/bin/pip
    printf '#!/bin/sh\\necho "uv $*" >>asked; exit 1' >.venv/bin/uv
    chmod +x .venv/bin/pip .venv/bin/uv
fi""",
}


def test_ci_installs_the_missing_package_alone_and_asks_an_index_twice(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    for name in ("run", "requirements.txt"):
        shutil.copy(ROOT / ".ci" / name, tmp_path / ".ci" / name)
    (tmp_path / "README.md").write_text("python3 -m venv .venv && echo pytest >>asked && exit 7\n")
    (tmp_path / "bin").mkdir()
    for program, text in MACHINE.items():
        (tmp_path / "bin" / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / program).chmod(0o755)
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    update, install = "apt-get update -qq", "apt-get install -y -qq --no-install-recommends slirp4netns"
    pip = "pip install -q --require-hashes -r "
    calls = (tmp_path / "asked").read_text().splitlines()
    assert calls[:3] == [update, update, install]
    assert calls[3:5] == [f"{pip}.venv/uv.txt"] * 2
    assert calls[5].startswith("uv pip install -q --compile-bytecode --require-hashes"), "uv, else pip"
    assert calls[6:] == [f"{pip}.ci/requirements.txt", "pytest"]
    locked_uv = (tmp_path / ".venv" / "uv.txt").read_text()
    assert re.match(r"uv==[\d.]+ \\\n    --hash=sha256:", locked_uv)
    assert locked_uv.count("==") == 1
