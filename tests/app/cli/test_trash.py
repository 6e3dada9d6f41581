"""The trash, and states that came from another home, on the command line."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from app.core.conversations import ConversationStore
from assets import sample_pdf
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, small_layout
from tests.engine.store.opened import Opened, tokens_of


@pytest.fixture
def full(pagekeep):
    """A home with a document and two conversations of one name in the trash."""
    pagekeep("index", "add", sample_pdf(), "--words-only")
    pagekeep("index", "remove", "pagekeep-sample.pdf")
    with closing(ConversationStore(pagekeep.home / "data" / "conversations.db")) as store:
        for _ in range(2):
            store.trash(store.create("Trip").id)
    return pagekeep


def test_what_is_in_the_trash_comes_back_by_name(full) -> None:
    listed = full("trash", "ls", "--json").json
    assert [c["title"] for c in listed["conversations"]] == ["Trip", "Trip"]
    assert [d["document"] for d in listed["documents"]] == ["pagekeep-sample.pdf"]
    first, second = (c["id"] for c in listed["conversations"])
    assert first[:8] in full("trash", "restore", "Trip", "--json").error["why"]
    assert "nothing.pdf" in full("trash", "restore", first, "nothing.pdf", "--json").error["why"]
    full("trash", "restore", first, "pagekeep-sample.pdf")
    assert [c["id"] for c in full("chat", "ls", "--json").json["conversations"]] == [first]
    assert [d["document"] for d in full("index", "ls", "--json").json["documents"]] == ["pagekeep-sample.pdf"]
    assert full("trash", "ls").out.split() == [second[:8], "Trip", "conversation"]


def test_the_trash_is_emptied_in_part_and_wholly(full) -> None:
    first = full("trash", "ls", "--json").json["conversations"][0]["id"]
    assert "gone for good" in full("trash", "empty", first[:8], first).out
    left = full("trash", "empty", "--json").json
    assert (len(left["conversations"]), len(left["documents"])) == (1, 1)
    assert full("trash", "ls").out == full("trash", "empty").out == "The trash is empty.\n"


def test_an_imported_state_bears_the_name_of_its_file(pagekeep, tmp_path: Path) -> None:
    with Opened(tmp_path / "there", small_layout()) as opened:
        opened.converse("some id", tokens_of(range(3 * PAGE))).release()
    with StoreTools(tmp_path / "there") as tools:
        tools.export_state("some id", tmp_path / "trip.state")
    taken = pagekeep("cache", "import", tmp_path / "trip.state", "--json").json
    assert (taken["conversation"], taken["name"], taken["tokens"]) == ("some id", "trip", 3 * PAGE)
    (listed,) = pagekeep("cache", "ls", "--json").json["conversations"]
    assert (listed["name"], listed["status"], listed["title"]) == ("trip", "imported", None)
    row = pagekeep("cache", "ls").out.splitlines()[1].split()
    assert (row[0], row[3]) == ("trip", "imported")
    assert pagekeep("cache", "show", "trip", "--json").json["conversation"] == "some id"
    shutil.copy(tmp_path / "trip.state", tmp_path / "later.state")
    pagekeep("cache", "import", tmp_path / "later.state")
    assert pagekeep("cache", "ls").out.splitlines()[1].startswith("later ")


def test_an_imported_state_is_removed_by_its_name(pagekeep, tmp_path: Path) -> None:
    with Opened(tmp_path / "there", small_layout()) as opened:
        opened.converse("some long id", tokens_of(range(3 * PAGE))).release()
    with StoreTools(tmp_path / "there") as tools:
        tools.export_state("some long id", tmp_path / "trip.state")
    for name in ("trip", "some long id", "some lon"):
        pagekeep("cache", "import", tmp_path / "trip.state")
        (done,) = pagekeep("cache", "rm", name, "--json").json["removed"]
        assert (done["name"], done["conversation"], done["models"]) == ("trip", "some long id", 1)
        assert done["bytes"] > 0
        assert pagekeep("cache", "ls", "--json").json["conversations"] == []
        assert pagekeep("cache", "stat", "--json").json["live_bytes"] == 0
    assert "no such conversation" in pagekeep("cache", "rm", "trip", "--json").error["what"]


def test_states_of_one_name_are_told_apart_by_their_ids(pagekeep, tmp_path: Path) -> None:
    with Opened(tmp_path / "there", small_layout()) as opened:
        for start, name in enumerate(("first id", "second id")):
            opened.converse(name, tokens_of(range(start, 3 * PAGE))).release()
    for name in ("first id", "second id"):
        (tmp_path / name).mkdir()
        with StoreTools(tmp_path / "there") as tools:
            tools.export_state(name, tmp_path / name / "trip.state")
        pagekeep("cache", "import", tmp_path / name / "trip.state")
    for command in (("rm", "trip"), ("pin", "trip"), ("show", "trip"), ("export", "trip", tmp_path / "x")):
        error = pagekeep("cache", *command, "--json").error
        assert error["what"] == "2 states are called 'trip'."
        assert "first id (imported)" in error["why"]
        assert "second id (imported)" in error["why"]
    assert len(pagekeep("cache", "ls", "--json").json["conversations"]) == 2
    (done,) = pagekeep("cache", "rm", "second id", "--json").json["removed"]
    assert done["conversation"] == "second id"
    assert pagekeep("cache", "show", "trip", "--json").json["conversation"] == "first id"
    with closing(ConversationStore(pagekeep.home / "data" / "conversations.db")) as store:
        made = store.create("trip").id
    assert f"{made} (conversation)" in pagekeep("cache", "rm", "trip", "--json").error["why"]


def test_the_log_of_an_unknown_conversation_is_an_error_that_names_the_known(pagekeep, tmp_path: Path) -> None:
    with Opened(tmp_path / "there", small_layout()) as opened:
        opened.converse("some long id", tokens_of(range(3 * PAGE))).release()
    with StoreTools(tmp_path / "there") as tools:
        tools.export_state("some long id", tmp_path / "trip.state")
    assert "Nothing is kept yet" in pagekeep("cache", "log", "nobody", "--json").error["why"]
    pagekeep("cache", "import", tmp_path / "trip.state")
    wrong = pagekeep("cache", "log", "nobody")
    assert wrong.status == 2
    assert "trip" in wrong.err
    assert [e["operation"] for e in pagekeep("cache", "log", "trip", "--json").json["entries"]] == ["import"]
    pagekeep("cache", "rm", "trip")
    gone = pagekeep("cache", "log", "some long id", "--json").json["entries"]
    assert [entry["operation"] for entry in gone] == ["import", "remove"], "what was removed is found by its id"
