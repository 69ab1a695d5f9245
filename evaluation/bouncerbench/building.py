"""Building BouncerBench's task files out of annotations, instances and submitted patches."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from bot import __version__
from bot.errors import OperatorError
from evaluation.bouncerbench.applying import Applying
from evaluation.bouncerbench.construct import Built, build
from evaluation.bouncerbench.material import read_annotations, read_instances, read_patches
from evaluation.cli.options import print_json, say
from evaluation.dataset import fingerprint


def command(
    annotations: str,
    instances: str,
    patches: str,
    repos: Path | None,
    submission: str | None,
    seed: int,
    out: str,
    as_json: bool,
) -> None:
    """Build input, output and Lite tasks as the paper does (II.A), and print the count of every step."""
    material = read_annotations(annotations), read_instances(instances), read_patches(patches)
    with nullcontext() if repos is None else Applying(repos) as applying:
        built = build(*material, seed, submission, None if applying is None else applying.fits)
        if applying is not None and applying.unchecked:
            say(f"not every patch could be tried; for one: {applying.unchecked}")
    facts: dict[str, Any] = {
        "seed": seed,
        "submission": submission,
        "version": __version__,
        "sources": {source: fingerprint(source) for source in (annotations, instances, patches)},
        "steps": built.steps,
    }
    _store(Path(out), built, facts)
    if as_json:
        print_json({"out": out, **facts})
    else:
        width = max(map(len, built.steps))
        click.echo("\n".join(f"{step:<{width}} {count:>7,}" for step, count in built.steps.items()))


def _store(folder: Path, built: Built, facts: dict[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("input", built.input), ("output", built.output), ("lite", built.lite)):
            (folder / f"{name}.jsonl.gz").write_bytes(_packed(rows))
        (folder / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="ascii")
    except OSError as error:
        raise OperatorError(f"--out {folder}: {error.strerror}") from None


def _packed(rows: Sequence[dict[str, Any]]) -> bytes:
    """JSON Lines, gzipped; without a time stamp, so that the same rows are the same bytes."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as stream:
        for row in rows:
            stream.write(json.dumps(row).encode("ascii") + b"\n")
    return out.getvalue()
