"""The requests to GitHub that each event costs: web and worker in processes, a simulated GitHub.

Counted after one round of everything, so that tokens, our own account and ``bouncer.yml`` are known, as they are
in a worker that runs. An answer that nothing has changed (304) is a request that costs nothing of the quota.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.simgithub.server import RecordedRequest
from tests.e2e.site import APP, BASE, BROKEN, WORSE, Site, site

VAGUE = ("It breaks", "It does not work any more.")
CLEAR = ("Empty files", "With version 4.2 `load` fails on an empty file.")
CONFIG = "triage:\n  mode: comment\n"


@dataclass(frozen=True)
class Cost:
    """The requests of one thing that happened, tokens left out."""

    requests: tuple[RecordedRequest, ...]

    @property
    def unchanged(self) -> int:
        return sum(request.status == 304 for request in self.requests)

    @property
    def writes(self) -> int:
        return sum(request.method != "GET" and request.path != "/graphql" for request in self.requests)

    @property
    def reads(self) -> int:
        return len(self.requests) - self.unchanged - self.writes

    @property
    def counted(self) -> int:
        """The number of requests that cost quota."""
        return self.reads + self.writes

    def listed(self) -> str:
        """Return one line for each request."""
        return "\n".join(f"    {request.status} {request.method} {request.path}" for request in self.requests)


def measure(shop: Site, home: str) -> dict[str, Cost]:
    """The cost of everything that can happen, in a repository of its own."""
    everything(shop, home)
    return everything(shop, home)


def everything(shop: Site, home: str) -> dict[str, Cost]:
    """Let it all happen once."""
    numbers: list[int] = []

    def opened(title: str, body: str) -> Callable[[], object]:
        return lambda: numbers.append(shop.github.open_issue(home, title, body))

    def pull() -> None:
        numbers.append(
            shop.github.open_pull(
                home, "Read values", f"Fixes #{numbers[0]}", files={APP: BROKEN}, closes=[numbers[0]]
            )
        )

    happens: dict[str, Callable[[], object]] = {
        "bounced issue": opened(*VAGUE),
        "clear issue": opened(*CLEAR),
        "comment of no concern": lambda: shop.github.comment(home, numbers[0], "Me too.", "carol"),
        "author's answer that clears": lambda: shop.github.comment(home, numbers[0], "It is version 4.2."),
        "comment on a clear issue": lambda: shop.github.comment(home, numbers[1], "I see.", "carol"),
        "pull request, check and review": pull,
        "push to it": lambda: shop.github.push(home, numbers[2], {APP: WORSE}),
        "issue after a push to main": lambda: (
            shop.github.commit(home, {"docs.md": f"{numbers}\n"}),
            shop.github.open_issue(home, *CLEAR),
        ),
    }
    return {name: _cost(shop, act) for name, act in happens.items()}


#: The gate alone.
GATED = (
    "triage: {mode: 'off'}\nverify: {mode: 'off'}\nreview: {mode: 'off'}\ngate: {mode: check, exempt_lines: 0}\n"
)


def measure_gate(shop: Site, home: str) -> dict[str, Cost]:
    """The cost of the gate, in a repository where nothing else is switched on."""
    warm = shop.github.open_issue(home, *CLEAR)
    shop.github.open_pull(home, "Warm up", files={APP: BROKEN}, closes=[warm])
    shop.quiet()
    issue = shop.github.open_issue(home, *CLEAR)
    shop.quiet()
    numbers: list[int] = []
    happens: dict[str, Callable[[], object]] = {
        "gate: pull request": lambda: numbers.append(
            shop.github.open_pull(home, "Read values", files={APP: BROKEN}, closes=[issue])
        ),
        "gate: push to it": lambda: shop.github.push(home, numbers[0], {APP: WORSE}),
        "gate: issue is labelled ready": lambda: shop.github.label(home, issue, "ready", by="mia"),
        "gate: issue gets another label": lambda: shop.github.label(home, issue, "bug", by="mia"),
        "gate: issue that no change links": lambda: shop.github.assign(
            home, shop.github.open_issue(home, *CLEAR), "mia", by="mia"
        ),
    }
    return {name: _cost(shop, act) for name, act in happens.items()}


#: Duplicates alone.
COMPARED = (
    "triage: {mode: 'off'}\nverify: {mode: 'off'}\nreview: {mode: 'off'}\n"
    "duplicates: {mode: comment, suggest_above: 90}\n"
)


def measure_duplicates(shop: Site, home: str) -> dict[str, Cost]:
    """The cost of comparing issues, in a repository with an index where nothing else is switched on."""
    issue = shop.github.open_issue(home, *CLEAR)
    shop.quiet()
    shop.index(home)
    shop.github.open_issue(home, "Warm up", CLEAR[1])
    shop.quiet()
    happens: dict[str, Callable[[], object]] = {
        "duplicates: issue like no other": lambda: shop.github.open_issue(home, "Zebra", "Stripes."),
        "duplicates: issue with another cause": lambda: shop.github.open_issue(home, "Files", "They are slow."),
        "duplicates: issue that repeats another": lambda: shop.github.open_issue(home, *CLEAR),
        "duplicates: issue is labelled": lambda: shop.github.label(home, issue, "reproduced", by="mia"),
    }
    return {name: _cost(shop, act) for name, act in happens.items()}


#: Verify alone, with and without the comparison of pull requests.
VERIFIED = "triage: {mode: 'off'}\nreview: {mode: 'off'}\nduplicates: {mode: MODE}\n"


def measure_pulls(shop: Site, home: str) -> Cost:
    """The cost of a pull request with an earlier one for the same issue and with the same change."""
    issue = shop.github.open_issue(home, *CLEAR)
    for _ in range(2):
        shop.github.open_pull(home, "Read values", files={APP: BROKEN}, closes=[issue])
        shop.quiet()
    return _cost(shop, lambda: shop.github.open_pull(home, "Read values", files={APP: BROKEN}, closes=[issue]))


def _cost(shop: Site, act: Callable[[], object]) -> Cost:
    before = len(shop.github.requests)
    act()
    shop.quiet()
    sent_requests = tuple(shop.github.requests)[before:]
    return Cost(tuple(question for question in sent_requests if not question.path.endswith("/access_tokens")))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, site(Path(folder)) as shop:
        costs = measure(shop, shop.repository("acme/measured", {".github/bouncer.yml": CONFIG, APP: BASE}))
        costs |= measure_gate(shop, shop.repository("acme/gated", {".github/bouncer.yml": GATED, APP: BASE}))
        costs |= measure_duplicates(shop, shop.repository("acme/compared", {".github/bouncer.yml": COMPARED}))
        for mode in ("'off'", "comment"):
            config = VERIFIED.replace("MODE", mode)
            home = shop.repository(f"acme/{mode.strip(chr(39))}", {".github/bouncer.yml": config, APP: BASE})
            costs[f"pull request, duplicates {mode}"] = measure_pulls(shop, home)
    print(f"{'what happens':40}{'reads':>7}{'writes':>8}{'counted':>9}{'unchanged':>11}{'requests':>10}")
    for name, cost in costs.items():
        figures = f"{cost.reads:7}{cost.writes:8}{cost.counted:9}{cost.unchanged:11}{len(cost.requests):10}"
        print(f"{name:40}{figures}")
    print("\n".join(f"\n{name}:\n{cost.listed()}" for name, cost in costs.items()))


if __name__ == "__main__":
    main()
