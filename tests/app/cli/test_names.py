"""Conversations by name: what is taken, what names several, what a refused question leaves behind."""

import re
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.core.conversations import ConversationStore
from app.core.cuts import Cut
from app.core.paths import Paths
from app.core.records import MessageRole
from app.core.settings import Settings, save_settings
from assets import sample_pdf
from engine.kv.log import KvLog
from engine.kv.notices import NOT_SAVED
from engine.messages import EngineSettings, Tokens
from tests.engine.store.opened import Opened, tokens_of
from tests.rag import pdf_files

MODEL = Path(__file__).parents[2] / "data" / "models" / "type-dense-q4_1.gguf"


@contextmanager
def store_of(pagekeep):
    pagekeep.home.mkdir(exist_ok=True)
    (pagekeep.home / "data").mkdir(exist_ok=True)
    with closing(ConversationStore(pagekeep.home / "data" / "conversations.db")) as store:
        yield store


@pytest.fixture
def two(pagekeep) -> tuple[str, str]:
    """Ids of two conversations of one name."""
    with store_of(pagekeep) as store:
        return store.create("X").id, store.create("X").id


def test_a_name_of_several_is_refused_with_their_ids(pagekeep, two: tuple[str, str]) -> None:
    for command in (("chat", "show", "X"), ("cache", "show", "X"), ("cache", "export", "X", pagekeep.home / "x")):
        why = pagekeep(*command, "--json").error["why"]
        assert all(name[:8] in why for name in two)
    assert all(name[:8] in pagekeep("chat", "ls").out for name in two)
    assert pagekeep("chat", "rename", two[0][:8], "Y", "--json").json == {"id": two[0], "title": "Y"}
    assert pagekeep("chat", "show", "X", "--json").json == {"messages": []}


def test_a_taken_name_is_refused(pagekeep) -> None:
    with store_of(pagekeep) as store:
        store.create("X")
        store.create("Y")
    for command in (("fork", "X", "--name", "X"), ("fork", "Y", "--name", "X"), ("rename", "Y", " X ")):
        assert "taken" in pagekeep("chat", *command, "--json").error["what"]
    assert pagekeep("chat", "rename", "X", "X", "--json").json["title"] == "X"
    assert [pagekeep("chat", "fork", "X", "--json").json["title"] for _ in range(2)] == ["Fork of X", "Fork 2 of X"]


def test_a_deleted_conversation_is_in_the_trash(pagekeep) -> None:
    with store_of(pagekeep) as store:
        made = store.create("X").id
    assert pagekeep("chat", "delete", "X", "--json").json == {"id": made, "title": "X"}
    with store_of(pagekeep) as store:
        assert store.list() == ()
        assert [c.id for c in store.list(trashed=True)] == [made]


def test_cache_says_truly_that_nothing_is_kept(pagekeep) -> None:
    with store_of(pagekeep) as store:
        store.create("X")
    for command in (("show", "X"), ("diff", "X", "X"), ("export", "X", pagekeep.home / "x"), ("pin", "X")):
        error = pagekeep("cache", *command, "--json").error
        assert error["what"] == "Nothing is kept of 'X'."
    assert "no such conversation" in pagekeep("cache", "show", "Z", "--json").error["what"]


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (("--pages", "900-901"), "900"),
        (("--collection", "none"), "none"),
        (("--ctx", "10"), "context"),
        (("--template", "zz"), "'zz'"),
        (("--reasoning", "on"), "Reasoning cannot be switched"),
        (("--conversation", " "), "--conversation is empty"),
    ],
)
def test_a_refused_question_leaves_no_conversation(pagekeep, tmp_path: Path, refused, told: str) -> None:
    book = pdf_files.write_pdf(tmp_path / "b.pdf", pdf_files.book(2))
    error = pagekeep("ask", book, "-q", "What?", "--model", MODEL, "--max-tokens", 1, *refused, "--json").error
    assert told in error["what"] + error["why"]
    with store_of(pagekeep) as store:
        assert (*store.list(), *store.list(trashed=True)) == ()


def test_good_files_are_taken_and_bad_ones_listed(pagekeep, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"no PDF")
    good = pdf_files.write_pdf(tmp_path / "b.pdf", pdf_files.book(2))
    command = ("index", "add", sample_pdf(), bad, tmp_path / "gone.pdf", good, "--words-only")
    done = pagekeep(*command, "--json")
    assert done.status == 2
    assert [d["document"] for d in done.json["documents"]] == ["pagekeep-sample.pdf", "b.pdf"]
    assert [f["file"] for f in done.json["failed"]] == [str(bad), str(tmp_path / "gone.pdf")]
    assert all(f["what"] and f["next"] for f in done.json["failed"])
    again = pagekeep(*command)
    assert (again.status, again.err.count("Not taken: ")) == (2, 4)  # when it is met, and at the end


def test_the_same_file_under_another_name_is_told(pagekeep, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pdf"
    copy.write_bytes(sample_pdf().read_bytes())
    done = pagekeep("index", "add", sample_pdf(), copy, "--words-only", "--json").json
    assert [d["document"] for d in done["documents"]] == ["pagekeep-sample.pdf"]
    assert [n["what"] for n in done["notices"]] == ["copy.pdf is the same file as pagekeep-sample.pdf."]
    assert done["documents"][0]["other_names"] == ["copy.pdf"]
    copy.unlink()
    for name in ("copy.pdf", "pagekeep-sample.pdf"):
        assert "    Also added as: copy.pdf\n" in pagekeep("index", "report", name).out
    assert "There is “pagekeep-sample.pdf”." in pagekeep("index", "report", "pagekeep-sample").err
    pagekeep("index", "remove", "copy.pdf")
    assert pagekeep("trash", "restore", "copy.pdf").status == 0
    assert pagekeep("index", "search", "trash", "--document", "copy.pdf", "--json").json["hits"]


def test_a_damaged_file_is_told_wherever_it_is_named(pagekeep, tmp_path: Path) -> None:
    whole = pdf_files.pdf_bytes(pdf_files.book(12))
    cut = tmp_path / "cut.pdf"
    cut.write_bytes(whole[: len(whole) * 6 // 10])
    added = pagekeep("index", "add", cut, "--words-only").out
    for told in (added, pagekeep("index", "ls").out, pagekeep("index", "report", "cut.pdf").out):
        assert "    Damaged: the pages that could be found were saved, by their place in the file" in told
        assert "The end of the file is missing." in told
    assert pagekeep("index", "report", "cut.pdf", "--json").json["note"].startswith("Damaged: ")


def test_a_collection_of_files_that_are_not_there_is_not_made(pagekeep) -> None:
    assert "nosuch.pdf" in str(pagekeep("index", "collect", "A  b", "nosuch.pdf", "--json").error)
    assert pagekeep("index", "collections", "--json").json == {"collections": []}


def test_a_removed_document_comes_back_with_its_file(pagekeep) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only")
    refused = pagekeep("index", "remove", sample_pdf(), "gone.pdf", "--json")
    assert "gone.pdf" in str(refused.error)
    assert len(pagekeep("index", "ls", "--json").json["documents"]) == 1
    assert pagekeep("index", "remove", "pagekeep-sample.pdf", "--json").json == {"removed": ["pagekeep-sample.pdf"]}
    assert pagekeep("index", "ls", "--json").json["documents"] == []
    assert pagekeep("index", "add", sample_pdf(), "--words-only", "--json").status == 0
    assert len(pagekeep("index", "ls", "--json").json["documents"]) == 1


SPOKEN: tuple[tuple[MessageRole, str], ...] = (("user", "one"), ("assistant", "1"), ("user", "two"))


def test_undo_says_why_nothing_comes_back(pagekeep) -> None:
    with store_of(pagekeep) as store:
        talk = store.create("X").id
        asked = [store.append(talk, role, text, Tokens.prompt(range(5))) for role, text in SPOKEN]
    assert "Nothing was removed or edited" in pagekeep("chat", "undo", "X", "--json").error["why"]
    done = pagekeep("chat", "trim", "X", "--at", 2)
    assert "Back again: pagekeep chat undo 'X'" in done.out
    assert re.search(r"leave the context \([\d,]+\.\d ms\)", done.out), "what it took is told apart"
    with store_of(pagekeep) as store:
        assert [m.id for m in store.messages(talk)] == [message.id for message in asked[:2]]
        three, four = (store.append(talk, role, "more", Tokens.prompt(range(5))) for role, _ in SPOKEN[:2])
    assert "pagekeep chat redo 'X'" in pagekeep("chat", "undo", "X").out
    with store_of(pagekeep) as store:
        assert [m.id for m in store.messages(talk)] == [message.id for message in asked]
    assert pagekeep("chat", "redo", "X", "--json").json["set_aside"] == 1
    with store_of(pagekeep) as store:
        assert [m.id for m in store.messages(talk)] == [m.id for m in (*asked[:2], three, four)]
    assert "nothing to redo" in pagekeep("chat", "redo", "X", "--json").error["what"]
    with store_of(pagekeep) as store:
        store.cuts.apply(talk, Cut(asked[0].id, three.id), 16)
    done = [pagekeep("chat", "undo", "X").out, pagekeep("chat", "redo", "X").out]
    assert ["put aside" in out for out in done] == [False, False], "a removal puts nothing aside"
    assert "pagekeep chat redo 'X'" in done[0]
    with store_of(pagekeep) as store:
        assert [m.in_context for m in store.messages(talk)] == [False, False, True, True]


def test_wide_numbers_of_a_plan_stay_apart(pagekeep) -> None:
    lines = pagekeep("model", "plan", MODEL, "--batch", 999_999_999_999).out.splitlines()
    assert len(lines[2].split()) == 5


def test_instructions_are_set_shown_and_removed(pagekeep) -> None:
    with store_of(pagekeep) as store:
        store.create("X")
    assert "no instructions" in pagekeep("chat", "instruct", "X").out
    assert "a clock" in pagekeep("chat", "instruct", "X", "Today is 30 November 2026.", "--json").error["what"]
    odd = "The part 1764480542 is a valve."
    assert "--anyway" in pagekeep("chat", "instruct", "X", odd, "--json").error["next"]
    assert pagekeep("chat", "instruct", "X", odd, "--anyway", "--json").json["instructions"] == odd
    told = pagekeep("chat", "instruct", "X", "Answer in German.", "--json").json["instructions"]
    assert told == "Answer in German." == pagekeep("chat", "instruct", "X").out.strip()
    assert pagekeep("chat", "instruct", "X", "", "--json").json["instructions"] == ""


def test_saving_that_was_refused_is_told_where_nothing_is_kept(pagekeep) -> None:
    with store_of(pagekeep) as store:
        talk = store.create("X").id
    assert "not read it to its end yet" in pagekeep("cache", "show", "X", "--json").error["why"]
    assert pagekeep("cache", "ls").out.strip() == "Nothing is kept yet."
    log = KvLog(Paths.below(pagekeep.home).kv)
    log.add("info", "save", conversation=talk, tokens=100, bytes=1000)
    log.add("warn", "notice", what=NOT_SAVED, why="The disk is full.", next="Free some space.")
    log.flush()
    told = pagekeep("cache", "show", "X", "--json").error
    assert "Saving was refused at 20" in told["why"]
    assert told["why"].endswith("the disk is full.")
    assert told["next"] == "Free some space."
    assert "Nothing is kept. Saving was refused" in pagekeep("cache", "ls").out


def logged(pagekeep, *entries: dict[str, Any]) -> None:
    """`at` of the entries: seconds from now."""
    log = KvLog(Paths.below(pagekeep.home).kv)
    for entry in entries:
        log.add("info", **{**entry, "at": time.time() + entry["at"]})
    log.flush()


def test_a_refusal_counts_only_where_it_is_why_nothing_is_kept(pagekeep) -> None:
    with store_of(pagekeep) as store:
        talk = store.create("X").id
    pagekeep("cache", "stat")
    days, refused = 86_400, {"operation": "notice", "what": NOT_SAVED, "why": "The disk is full."}
    logged(pagekeep, {"operation": "save", "conversation": talk, "at": -9 * days}, {**refused, "at": -3 * days})
    assert "not read it to its end yet" in pagekeep("cache", "show", "X", "--json").error["why"]
    assert "Nothing is kept. Saving was refused" in pagekeep("cache", "ls").out, "nothing was saved since"
    logged(pagekeep, {"operation": "save", "conversation": talk, "at": 10 - 3 * days})
    told = pagekeep("cache", "show", "X", "--json").error
    assert "Saving was refused at 20" in told["why"]
    assert "cache stat" in told["next"], "notices of older versions have no such word"
    logged(pagekeep, {"operation": "save", "conversation": "other", "at": -2 * days})
    assert pagekeep("cache", "ls").out.strip() == "Nothing is kept yet."
    logged(pagekeep, {**refused, "at": -days}, {"operation": "remove", "reason": "asked for", "at": -5})
    assert pagekeep("cache", "ls").out.strip() == "Nothing is kept yet.", "it was emptied since"


def test_what_pins_hold_above_the_budget_is_told_and_damage_ends_with_status_1(pagekeep) -> None:
    kv = Paths.below(pagekeep.home).kv
    with Opened(kv) as opened:
        opened.converse("c", tokens_of(range(300))).release()
        opened.cache.conversations.pin("c", True)
    settings = Paths.below(pagekeep.home).settings
    settings.parent.mkdir(parents=True, exist_ok=True)
    save_settings(settings, Settings(engine=EngineSettings(disk_budget_bytes=20_000)))
    found = pagekeep("cache", "stat", "--json").json
    assert 20_000 < found["pinned_bytes"] == found["live_bytes"]
    for command in ("stat", "gc"):
        assert "Nothing else is saved until some are unpinned" in pagekeep("cache", command).out
    segment = max((kv / "segments").iterdir(), key=lambda path: path.stat().st_size)
    assert pagekeep("cache", "verify").status == 0
    data = bytearray(segment.read_bytes())
    data[4096 + 4096 + 8] ^= 1  # in the first payload
    segment.write_bytes(data)
    first, again = pagekeep("cache", "verify"), pagekeep("cache", "verify")
    assert (first.status, again.status) == (1, 0), (first.out, again.out)
    assert "in “c”" in first.out
    segment.unlink()
    gone = pagekeep("cache", "verify")
    assert gone.status == 1
    assert "lost, in “c”" in gone.out


def test_a_conversation_whose_end_was_refused_is_named(pagekeep, two: tuple[str, str]) -> None:
    with Opened(Paths.below(pagekeep.home).kv, disk_budget=9000) as opened:
        opened.converse(two[0], tokens_of(range(100))).release()
        opened.converse("unknown", tokens_of(range(500, 600))).release()
        assert "budget" in opened.store.refused()
    assert "End not on disk: X (not saved: the disk budget refused it)." in pagekeep("cache", "ls").out
    (refused,) = pagekeep("cache", "ls", "--json").json["refused"]
    assert (refused["conversation"], refused["reason"]) == (two[0], "refused by the budget")
    with Opened(Paths.below(pagekeep.home).kv) as opened:
        opened.converse(two[0], tokens_of(range(40))).release()
    assert "End not on disk" not in pagekeep("cache", "ls").out
