"""Benchmarks that no model was trained on: executable tasks from the recent fixes in a clone's history."""

from __future__ import annotations

from evaluation.benchmark import Entry

ENTRIES = {
    "fresh": Entry(
        "executable tasks of every kind from a clone's recent bug fixes",
        {"build": ("evaluation.fresh.commands:build", "Build tasks of every kind from recent bug fixes.")},
    )
}
