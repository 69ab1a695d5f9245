"""The default sandbox: the view of a program, and the errors if it cannot be started."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import SandboxError
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.launch import pack
from bot.sandbox.monitor import measure
from bot.sandbox.protocol import Limits, ProgramResult
from tests.bot.sandbox.conftest import run

pytestmark = pytest.mark.debian("bubblewrap")


def shell(project: Path, script: str, **more: Any) -> ProgramResult:
    return run(project, ["sh", "-c", script], **more)


def test_a_program_works_on_a_copy_with_files_on_top(project: Path, untouched: Path) -> None:
    outcome = shell(
        project,
        "cat package/data.txt package/new/deep.txt; echo changed >package/data.txt; cp package/data.txt out.txt",
        files={"package/new/deep.txt": "on top\n", "package/data.txt": "replaced\n"},
        collect=("out.txt", "package/data.txt"),
    )
    assert (outcome.ending, outcome.exit_code, outcome.output) == ("exited", 0, "replaced\non top\n")
    assert dict(outcome.files) == {"out.txt": "changed\n", "package/data.txt": "changed\n"}


def test_nothing_stays_from_one_run_to_the_next(project: Path) -> None:
    before = shell(project, "ls -A . /tmp; touch left /tmp/left").output
    assert "left" not in before
    assert shell(project, "ls -A . /tmp").output == before


def test_output_is_interleaved_and_the_exit_code_is_the_programs(project: Path) -> None:
    outcome = shell(project, "echo one; echo two >&2; echo three; exit 3")
    assert (outcome.output, outcome.exit_code, outcome.ending) == ("one\ntwo\nthree\n", 3, "exited")


def test_a_program_that_dies_of_a_signal_has_the_shells_exit_code(project: Path) -> None:
    outcome = run(project, ["python3", "-c", "import os; os.abort()"])
    assert (outcome.ending, outcome.exit_code) == ("exited", 134)


def test_the_environment_is_minimal_plus_the_given_variables(project: Path) -> None:
    outcome = shell(project, "env | sort", env={"PYTHONPATH": "src", "LANG": "C"})
    names = [line.partition("=")[0] for line in outcome.output.splitlines()]
    assert set(names) <= {
        "HOME", "LANG", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPATH", "TMPDIR", "TZ",
        "USER", "_", "SHLVL", "OLDPWD",
    }  # fmt: skip
    assert "LANG=C\n" in outcome.output
    assert "PYTHONPATH=src\n" in outcome.output


def test_a_readable_folder_can_be_read_at_its_own_path_and_not_be_changed(project: Path, untouched: Path) -> None:
    outcome = shell(project, f"cat {untouched}/key.pem; echo x >{untouched}/key.pem", readable=(untouched,))
    assert outcome.output.startswith("private key\n")
    assert "Read-only file system" in outcome.output


def test_a_folder_that_only_its_owner_may_enter_is_readable(project: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "tools").mkdir(parents=True)
    (closed / "tools" / "tool.txt").write_text("tool\n")
    (closed / "secret.txt").write_text("secret\n")
    closed.chmod(0o700)
    outcome = shell(
        project,
        f"cat {closed}/tools/tool.txt; ls -A {closed}; cat {closed}/secret.txt",
        readable=(closed / "tools",),
    )
    assert outcome.output.startswith("tool\ntools\n")
    assert "No such file" in outcome.output


def test_a_set_up_writes_to_its_folders_within_the_size_limit(project: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    place.mkdir()
    outcome = shell(project, f"echo made >{place}/file; ls {place}", writable=(place,))
    assert (outcome.output, (place / "file").read_text()) == ("file\n", "made\n")
    outcome = shell(
        project,
        f"while true; do head -c 1000000 /dev/zero >>{place}/$(date +%N); done",
        writable=(place,),
        limits=Limits(seconds=30, disk_bytes=16 << 20),
    )
    assert outcome.ending == "disk"


@pytest.mark.parametrize(("count", "ending"), [(400, "exited"), (600, "disk")])
def test_entries_of_a_set_up_are_limited(project: Path, tmp_path: Path, count: int, ending: str) -> None:
    """With one of the four kinds left out, 600 of the others would be below the limit."""
    place = tmp_path / "environment"
    place.mkdir()
    code = (
        f"import os\nplace = '{place}'\nopen(f'{place}/first', 'w').close()\nfor n in range({count}):\n"
        "    open(f'{place}/{n}', 'w').close()\n    os.link(f'{place}/first', f'{place}/{n}.link')\n"
        "    os.symlink('nowhere', f'{place}/{n}.symlink')\n    os.mkdir(f'{place}/{n}.folder')\n"
    )
    limits = Limits(seconds=60, entries=2_000)
    outcome = run(project, ["python3", "-c", code], limits=limits, writable=(place,))
    assert outcome.ending == ending, outcome.output


def test_an_empty_file_costs_an_inode(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert measure(tmp_path).entries == 101
    assert measure(tmp_path).cost >= 100 * 16_384


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "", ".", "a\0b", "a\nb"])
def test_files_cannot_be_written_outside(project: Path, name: str) -> None:
    with pytest.raises(SandboxError, match="no path below the work folder"):
        run(project, ["true"], files={name: ""})
    with pytest.raises(SandboxError, match="no path below the work folder"):
        run(project, ["true"], collect=(name,))


def test_a_link_out_of_the_project_is_copied_as_a_link(project: Path, untouched: Path) -> None:
    (project / "link").symlink_to(untouched)
    outcome = shell(project, "cat link/key.pem")
    (project / "link").unlink()
    assert "No such file" in outcome.output


def test_a_missing_work_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="nowhere cannot be read"):
        run(tmp_path / "nowhere", ["true"])


def test_a_checkout_that_is_too_large_is_refused(project: Path) -> None:
    with (project / "sparse").open("wb") as stream:
        stream.truncate(3 << 30)
    with pytest.raises(SandboxError, match="more than 2048 MiB is not copied"):
        pack(project, {})


def test_a_work_folder_behind_a_link_has_its_size(project: Path, tmp_path: Path) -> None:
    (project / "data").write_bytes(b"x" * 50_000)
    link = tmp_path / "link"
    link.symlink_to(project)
    sizes = []
    for folder in (project, link):
        archive = pack(folder, {})
        archive.stream.close()
        sizes.append(archive.size)
    assert sizes[0] == sizes[1] > 50_000


def test_a_missing_folder_and_the_root_are_refused(project: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", Path("/")):
        with pytest.raises(SandboxError, match="cannot be shown"):
            shell(project, "true", readable=(folder,))


def test_a_missing_bubblewrap_is_one_clear_line(project: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-bwrap is not installed"):
        run(project, ["true"], Bubblewrap(program="no-such-bwrap"))


def test_forbidden_user_namespaces_are_named_as_the_reason(project: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = Path(folder, "bwrap")
        program.write_text(
            "#!/bin/sh\necho 'bwrap: No permissions to create new namespace, likely ...' >&2\nexit 1\n"
        )
        program.chmod(0o755)
        with pytest.raises(SandboxError, match=r"No permissions .*user namespaces seem to be forbidden here"):
            run(project, ["true"], Bubblewrap(program=str(program)))
