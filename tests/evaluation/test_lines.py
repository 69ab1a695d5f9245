"""Result files are written whole, into what the name stands for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from evaluation.run.lines import write_file, write_result


def test_a_link_to_a_device_or_a_file_stays_a_link(tmp_path: Path) -> None:
    for name, target in (("nothing", Path(os.devnull)), ("linked", tmp_path / "target.json")):
        link = tmp_path / name
        link.symlink_to(target)
        write_result(link, "first\n")
        write_result(link, "second\n")
        assert link.is_symlink(), name
    assert (tmp_path / "target.json").read_text() == "second\n"
    assert {path.name for path in tmp_path.iterdir()} == {"nothing", "linked", "target.json"}


def test_a_link_in_a_folder_of_results_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    (tmp_path / "run.json").symlink_to(outside)
    write_file(tmp_path / "run.json", "ours")
    assert (outside.read_text(), (tmp_path / "run.json").read_text()) == ("theirs", "ours")


def test_a_result_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = "import sys; print(open(sys.argv[1]).read())"
    with subprocess.Popen([sys.executable, "-c", program, pipe], stdout=subprocess.PIPE, text=True) as reader:
        write_result(pipe, "a result")
        assert reader.communicate(timeout=30)[0] == "a result\n"
    assert pipe.is_fifo()
