"""The layers on the command line: cases are built, replayed, and compared with the baseline."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.evaluation.checkouts import UNITTEST_CASE, UNITTEST_HEAD, checkouts
from tests.evaluation.running import command, printed, read, write

BUGGY = (
    "def split_list(items, size):\n"
    "    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n"
)
FIXED = BUGGY.replace("len(items) // size", "-(-len(items) // size)")
REPORT = "split_list drops the rest\n\n`split_list([1, 2, 3], 2)` gives `[[1, 2]]`. I expect `[[1, 2], [3]]`.\n"
TEST = UNITTEST_HEAD.format(name="split_list") + "self.assertEqual(split_list([1, 2, 3], 2), [[1, 2], [3]])\n"

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """One case, and a recorded model that drafts the test under the name that it read in the training data."""
    checkouts(tmp_path, {"lists.py": BUGGY}, {"lists.py": FIXED})
    write("cases.jsonl", [{**UNITTEST_CASE, "instance_id": "lists-1", "problem_statement": REPORT}])
    write("drafts.jsonl", [{"model": "m", "subject": "lists-1", "plan": "", "code": TEST}])
    return tmp_path


#: The bench has no developer's test.
UNVERIFIED = ("--cases", "cases.jsonl", "--change", "hash", "--out", "masked", "--unverified")


def test_a_model_that_knows_the_name_by_heart_fails_once_it_is_masked(bench: Path) -> None:
    built = printed("build", "bloom", *UNVERIFIED)
    drafting = ("--model", "recorded:drafts.jsonl#m", "--samples", "1")
    command("replay", "brt", "--cases", "cases.jsonl", *drafting, "--out", "plain")
    command("replay", "brt", "--cases", "masked/cases.jsonl", *drafting, "--out", "hashed")

    scores = printed("score", "bloom", "--baseline", "plain", "--altered", "hashed")

    assert (built["built"], built["failed"]) == (1, 0)
    assert scores["remember"]["brt"] == 1.0
    assert scores["altered"]["hashed"]["altered"] == 0.0
    assert scores["altered"]["hashed"]["consistency"] == 0.0
    assert scores["altered"]["hashed"]["lost"] == 1


def test_a_case_that_a_change_fails_on_is_listed_and_never_passed_on(bench: Path) -> None:
    write("words.jsonl", [{"model": "m", "subject": "lists-1", "report": "Nothing of the code is left."}] * 9)
    arguments = ("--cases", "cases.jsonl", "--change", "rephrased", "--model", "recorded:words.jsonl#m")

    built = command("build", "bloom", *arguments, "--out", "other", "--json", code=1).json
    assert (built["built"], built["failed"]) == (0, 1)
    (failed,) = read("other/failed.jsonl")
    assert failed["instance_id"] == "lists-1"
    assert "no rephrased text kept its meaning in 5 tries" in failed["why"]


def test_a_folder_of_something_else_is_refused(bench: Path) -> None:
    ran = command("build", "bloom", "--cases", "cases.jsonl", "--change", "hash", "--out", "base", code=2)
    assert "base: not empty" in ran.err


def test_a_masked_pair_that_no_developers_test_verifies_is_left_out(bench: Path) -> None:
    arguments = ("--cases", "cases.jsonl", "--change", "hash", "--out", "masked")
    built = command("build", "bloom", *arguments, "--json", code=1).json
    assert (built["built"], built["failed"]) == (0, 1)
    assert "no developer's test" in Path("masked/failed.jsonl").read_text()
    facts = json.loads(Path("masked/run.json").read_text())
    assert facts["tasks"]["source"] == str(bench / "cases.jsonl"), "valid in every working directory"
    assert facts["config"]["unverified"] is False, "a setting that is off is on record, too"


def test_a_masked_pair_that_fails_the_developers_test_is_left_out(bench: Path) -> None:
    """The test calls the method by a name that it reads from a file: no renaming can follow that."""
    (case,) = read("cases.jsonl")
    tests = {
        "followed": TEST,
        "lost": TEST.replace(
            "from lists import split_list", "import lists\n\nNAME = 'split' + '_' + 'list'"
        ).replace("split_list(", "vars(lists)[NAME]("),
    }
    write(
        "cases.jsonl", [{**case, "instance_id": name, "test_patch": added(text)} for name, text in tests.items()]
    )

    built = printed("build", "bloom", "--cases", "cases.jsonl", "--change", "hash", "--out", "masked")

    assert (built["built"], built["failed"], built["unverified"]) == (1, 1, 0)
    (masked,) = read("masked/cases.jsonl")
    assert masked["changes"]["hash"]["verified"] is True
    assert "func_" in masked["test_patch"]
    assert not (Path(masked["base"]) / "tests").exists()
    (failed,) = read("masked/failed.jsonl")
    assert failed["instance_id"] == "lost"
    assert "does not reproduce the bug once its methods are renamed" in failed["why"]
    titles = [section["title"] for section in printed("report", "masked")["sections"]]
    assert titles == ["Runs", "Cost"], "a build has no score of its own"


def added(text: str) -> str:
    body = "".join(f"+{line}\n" for line in text.splitlines())
    return f"--- /dev/null\n+++ b/tests/test_rest.py\n@@ -0,0 +1,{len(text.splitlines())} @@\n{body}"


PRICES = {"models": {name: {"input": 1, "output": 10} for name in ("openai:writer", "openai:judge")}}
#: US dollars: room for one question's worst case and for three answers.
BUDGET = 0.17


@dataclass
class Server:
    """A provider's server with two models; ``unusable`` has it answer with something that is no JSON."""

    models: list[str] = field(default_factory=list)
    unusable: bool = False

    def answer(self, request: Request) -> Response:
        self.models.append(request.get_json()["model"])
        new = {"report": "The rest is lost.\n\n`split_list([1, 2, 3], 2)`, `[[1, 2]]`, `[[1, 2], [3]]`."}
        content = "no" if self.unusable else json.dumps({"same": True, "differences": "", **new})
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": 1000, "completion_tokens": 1000}
        body = {"model": "m", "choices": [choice], "usage": usage}
        return Response(json.dumps(body), content_type="application/json")


@pytest.fixture
def server(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(server.answer)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return server


BUILD = ("build", "bloom", "--cases", "cases.jsonl", "--change", "rephrased", "--out", "told")
PAID = (*BUILD, "--model", "openai:writer", "--judge", "openai:judge", "--max-cost")


def test_a_spent_budget_ends_a_build_which_the_same_command_continues(
    bench: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writer and judge are two models of one server; together they may spend what is given, and no more."""
    (case,) = read("cases.jsonl")
    write(
        "cases.jsonl",
        [case | {"instance_id": f"lists-{n}", "problem_statement": f"{n}: {REPORT}"} for n in range(3)],
    )
    Path("prices.json").write_text(json.dumps(PRICES))
    monkeypatch.setenv("BOUNCER_PRICES_FILE", "prices.json")

    first = command(*PAID, str(BUDGET), "--json", code=1)
    paid = len(server.models)
    assert "the budget of this build" in first.err
    assert "the same command goes on from here" in first.err
    assert 0 < json.loads(first.out)["built"] < 3
    assert json.loads(first.out)["failed"] == 0

    again = printed(*PAID, "100")

    assert (again["built"], again["missing"], again["stopped"]) == (3, 0, None)
    assert set(server.models) == {"writer", "judge"}
    assert len(server.models) == 6  # nothing was asked a second time
    assert paid < 6


def test_a_build_counts_what_failures_cost_that_no_cache_keeps(
    bench: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("prices.json").write_text(json.dumps(PRICES))
    monkeypatch.setenv("BOUNCER_PRICES_FILE", "prices.json")
    server.unusable = True
    assert command(*PAID, "100", "--json", code=1).json["failed"] == 1
    failures = len(server.models)
    server.unusable = False
    assert printed(*PAID, "100")["built"] == 1
    usage = json.loads(Path("told/run.json").read_text())["totals"]["usage"]
    assert 0 < failures < len(server.models) == usage["calls"]
    assert usage["cost_usd"] == pytest.approx(0.011 * len(server.models))


def test_layers_are_told_as_tables_and_as_a_page(bench: Path) -> None:
    drafting = ("--model", "recorded:drafts.jsonl#m", "--samples", "1")
    for out, more in (("plain", ()), ("picked", ("--pick",))):
        command("replay", "brt", "--cases", "cases.jsonl", *drafting, *more, "--out", out)
    shutil.copytree("plain", "again")
    (case,) = read("cases.jsonl")
    write("asked.jsonl", [{**case, "changes": {"clarified": {"flagged": True, "answer": "Two lists."}}}])
    write("unclear.jsonl", [{"instance_id": "lists-1", "unclear": True}])
    create = ("--clarified", "again", "--asked", "asked.jsonl", "--unclear", "unclear.jsonl")

    ran = command(
        "score bloom --baseline plain --repeat again --altered again --open picked --picked picked",
        *create,
        "--out",
        "layers.html",
    )

    output = ran.out
    for text in (
        "Repeated 1 time: all runs come to the same on 100.0 % of the bugs.",
        "baseline consistency %",
        "paper, GHRB, StarCoder: meaningful, translated",
        "open book %BRT",
        "precision, tests (Bloom)",
        "With the pick a right test comes first for 0 bugs more and 0 bugs fewer",
        "ambiguity detection rate %",
        "reproduction improvement rate, points",
    ):
        assert text in output, text
    write("unanswered.jsonl", [{**case, "changes": {"clarified": {"flagged": True, "answer": ""}}}])
    unanswered = ("--baseline", "plain", "--clarified", "again", "--asked", "unanswered.jsonl")
    assert printed("score", "bloom", *unanswered)["create"]["improvement"]["reports"] == 0
    write("rephrased.jsonl", [{**case, "changes": {"rephrased": True}}])
    never_read = ("--baseline", "plain", "--asked", "rephrased.jsonl", "--unclear", "unclear.jsonl")
    assert printed("score", "bloom", *never_read)["create"]["detection"]["unanswered"] == 1
    assert "without a verdict" in command("score", "bloom", *never_read).out
    page = Path("layers.html").read_text()
    assert page.count("<svg") == 3
    assert "Figure 2: closed and open book on GHRB" in page


def test_components_annotated_by_hand_go_with_the_success_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"bug_id": f"b-{n}", "test code": n % 2 == 0, "stack trace": n % 3 == 0} for n in range(120)]
    write("hand.jsonl", rows)
    ranks = "".join(f"b_{n},{1 if n % 2 == 0 else 100000},{(n + 1) % 2},3\n" for n in range(120))
    Path("ranks.csv").write_text(f"bug_id,first_success_rank,total_success_fibs,num_clusters\n{ranks}")

    value = printed("score", "bloom", "--annotations", "hand.jsonl", "--rankings", "ranks.csv")

    first, second = value["importances"]
    assert (first["component"], first["rank"], second["rank"]) == ("test code", 1, 2)
    assert value["auc"] == 1.0
    assert (value["presence"]["test code"], value["success_with"]["test code"]) == (0.5, 1.0)
    assert value["success_without"]["test code"] == 0.0


def test_a_report_that_triage_cannot_read_is_no_clear_report(bench: Path) -> None:
    write("broken.jsonl", [{"model": "m", "subject": "lists-1", "label": "NO SUCH LABEL"}])
    arguments = ("--cases", "cases.jsonl", "--change", "clarified", "--model", "recorded:broken.jsonl#m")

    built = command("build", "bloom", *arguments, "--out", "asked", "--json", code=1).json
    assert (built["built"], built["failed"]) == (0, 1)
    assert "triage has no verdict" in Path("asked/failed.jsonl").read_text()


def test_bugs_that_share_a_report_are_grouped_as_in_the_paper(shared_data: Path) -> None:
    """Section 5.1: 29 groups of bugs linked to the same report, 66 distinct bugs."""
    reports = str(shared_data / "brt" / "defects4j_bug_reports.jsonl.gz")

    value = printed("score", "bloom", "--reports", reports)

    assert (len(value["shared_reports"]["groups"]), value["shared_reports"]["bugs"]) == (29, 66)
    assert ["Closure-115", "Closure-116", "Closure-175"] in value["shared_reports"]["groups"]
    assert round(value["presence"]["stack trace"], 3) == 0.110
