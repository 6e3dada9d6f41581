"""`pagekeep ask` end to end with the starter model; each turn is a process of its own.

Over 300 lines: every way a question can go on the command line, each with real processes.
"""

import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from app.cli.start import QUESTION
from app.core.conversations import ConversationStore
from app.core.paths import Paths
from app.core.prompt import history
from assets import sample_pdf
from engine.store.tools import StoreTools
from tests.rag import pdf_files

pytestmark = [pytest.mark.model, pytest.mark.slow]

# Tokens of the starter model: its template's text between an answer and the next question ("\n<|im_start|>user\n",
# with "<|im_end|>" before it when the answer was cut), behind a question ("<|im_end|>\n<|im_start|>assistant\n"),
# and of the second question itself.
GLUE, GLUE_AFTER_CUT, ANSWER_OPEN = 4, 5, 6
SECOND, SECOND_TOKENS = "And on the third page?", 6
LAST_SAMPLED = 1

# Runs the command line and counts every row that goes through the model.
COUNTING = """
import sys
from kernels.native_program import NativeProgram
rows, begun, stepped, ended = [0], [0], NativeProgram.step_runs, NativeProgram._result
def beginning(self, runs, *given, **named):
    begun[0] = sum(len(run[0]) for run in runs)
    return stepped(self, runs, *given, **named)
def counting(self, *outcome):  # of steps and of parked steps that went on
    result = ended(self, *outcome)
    rows[0] += begun[0] if result.completed else 0
    return result
several = NativeProgram.decode
def following(self, *given):
    found = several(self, *given)
    rows[0] += sum(map(len, found.tokens))
    return found
NativeProgram.step_runs, NativeProgram._result, NativeProgram.decode = beginning, counting, following
from app.main import main
status = main(sys.argv[1:])
print("rows", rows[0], file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return pdf_files.write_pdf(tmp_path / "long.pdf", pdf_files.book(4))


def stored(pagekeep, name: str):
    store = ConversationStore(pagekeep.home / "data" / "conversations.db")
    conversation = store.find(name)
    messages = store.messages(conversation.id) if conversation else ()
    store.close()
    return messages


def test_a_new_process_computes_last_token_glue_and_question(pagekeep, book: Path, starter_model: Path) -> None:
    common = ("--conversation", "c", "--model", starter_model, "--max-tokens", 9, "--temperature", 0, "--json")
    first = pagekeep("ask", book, "-q", "Which word is on page two?", *common).json
    assert first["mode"] == "whole"
    assert first["tokens"]["reused"] == {"memory": 0, "disk": 0, "of_which_shared": 0}
    assert first["tokens"]["computed"] == [{"tokens": first["tokens"]["prompt"], "reason": "new"}]
    before = len(history(stored(pagekeep, "c")))
    assert before == first["tokens"]["prompt"] + first["tokens"]["generated"]

    done = pagekeep("ask", book, "-q", SECOND, *common, program=("-c", COUNTING))
    second = done.json
    glue = GLUE_AFTER_CUT if first["finish_reason"] == "length" else GLUE
    new = glue + SECOND_TOKENS + ANSWER_OPEN
    assert second["tokens"]["prompt"] == before + new
    assert second["tokens"]["reused"]["disk"] == before - LAST_SAMPLED
    assert second["tokens"]["reused"]["memory"] == 0
    shared = stored(pagekeep, "c")[0].placement.shared_tokens
    assert second["tokens"]["reused"]["of_which_shared"] == shared > 300
    assert second["tokens"]["computed"] == [
        {"tokens": LAST_SAMPLED, "reason": "last sampled"},
        {"tokens": new, "reason": "new"},
    ]
    generated = second["tokens"]["generated"]
    (rows,) = [int(line.split()[1]) for line in done.err.splitlines() if line.startswith("rows ")]
    assert rows == LAST_SAMPLED + new + generated - 1, "the last sampled token is not fed to the model"
    assert second["bytes_read"] > 0


def test_keys_and_citation(pagekeep, starter_model: Path) -> None:
    command = ("ask", sample_pdf(), "-q", QUESTION, "--mode", "retrieve")
    done = pagekeep(*command, "--model", starter_model, "--max-tokens", 40, "--temperature", 0, "--json").json
    assert set(done) >= {"answer", "citations", "tokens", "timings_ms"}
    assert set(done["tokens"]) == {"prompt", "reused", "computed", "generated", "drafted", "accepted"}
    times = {"queue", "retrieve", "restore", "remove", "prefill", "first_token", "decode", "save"}
    assert set(done["timings_ms"]) == times
    assert done["timings_ms"]["retrieve"] > 0
    assert done["mode"] == "passages"
    for citation in done["citations"]:
        assert set(citation) >= {"document", "ranges", "quote", "verified"}
        assert citation["verified"] in ("exact", "altered", "matched", "not_found")
        for part in citation["ranges"]:
            assert set(part) == {"page_index", "page_label", "char_start", "char_count"}


def test_a_document_of_the_library_is_asked_by_its_name(pagekeep, starter_model: Path) -> None:
    pagekeep("index", "add", sample_pdf(), "--words-only")
    asked = ("-q", QUESTION, "--mode", "retrieve", "--model", starter_model, "--max-tokens", 1, "--json")
    assert pagekeep("ask", sample_pdf().name, *asked).json["mode"] == "passages"
    missing = pagekeep("ask", "other.pdf", *asked)
    assert "other.pdf is not there" in missing.err + missing.out


def test_the_cited_range_is_the_quote_on_the_page(pagekeep, starter_model: Path) -> None:
    import pypdfium2

    command = ("ask", sample_pdf(), "-q", QUESTION, "--model", starter_model)
    done = pagekeep(*command, "--max-tokens", 40, "--temperature", 0, "--json").json
    assert "90 days" in done["answer"]
    assert done["conversation"]["title"] == QUESTION.rstrip("?")
    citation = next(c for c in done["citations"] if c["ranges"])
    pdf = pypdfium2.PdfDocument(sample_pdf())
    texts = [
        pdf[r["page_index"]].get_textpage().get_text_range(r["char_start"], r["char_count"]) for r in citation["ranges"]
    ]
    pdf.close()
    assert " ".join(" ".join(texts).split()) == citation["quote"]


def test_the_first_minute(pagekeep, starter_model: Path) -> None:
    models = pagekeep.home / "data" / "models"
    models.mkdir(parents=True)
    shutil.copy(starter_model, models)
    done = pagekeep("start")
    assert done.status == 0
    assert "90 days" in done.out
    assert "pagekeep-sample.pdf, page 3" in done.out
    assert "pagekeep ask" in done.err, "there is no display here"


def test_on_the_terminal(pagekeep, starter_model: Path) -> None:
    command = ("ask", sample_pdf(), "-q", QUESTION, "--model", starter_model)
    done = pagekeep(*command, "--max-tokens", 40, "--temperature", 0)
    assert done.status == 0
    assert "tokens reused" in done.out
    assert "pagekeep-sample.pdf, page " in done.out
    assert "Traceback" not in done.err


def pages_kept(pagekeep) -> int:
    with StoreTools(Paths.below(pagekeep.home).kv) as tools:
        return sum(share.pages for share in tools.stat().shares)


def test_killed_while_answering_keeps_the_answer_and_goes_on(pagekeep, book: Path, starter_model: Path) -> None:
    common = ("--conversation", "c", "--model", starter_model, "--temperature", 0)
    process = pagekeep.start("ask", book, "-q", "Tell a long story.", *common, "--max-tokens", 400)
    with process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        deadline = time.monotonic() + 120
        while not (len(stored(pagekeep, "c")[-1].tokens) >= 5 and pages_kept(pagekeep)):
            assert time.monotonic() < deadline, "nothing is stored"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    answer = stored(pagekeep, "c")[-1]
    assert answer.state == "partial"
    assert len(answer.tokens) >= 5
    before = len(history(stored(pagekeep, "c")))
    (left,) = pagekeep("cache", "ls", "--json").json["unclaimed"]
    assert left["tokens"] >= 128, "its sealed pages, though its end was never saved"
    listed = pagekeep("cache", "ls").out
    assert f"Of no conversation: {left['tokens']:,} tokens in " in listed
    assert "Nothing is kept" not in listed
    done = pagekeep("ask", "-q", SECOND, *common, "--max-tokens", 4, "--json").json
    assert done["tokens"]["prompt"] == before + GLUE_AFTER_CUT + SECOND_TOKENS + ANSWER_OPEN
    assert done["tokens"]["reused"]["disk"] > 0, "sealed pages were written while it answered"


def test_interrupted_keeps_the_answer(pagekeep, starter_model: Path) -> None:
    command = ("ask", "-q", "Tell a long story.", "--conversation", "c", "--model", starter_model)
    with pagekeep.start(*command, "--max-tokens", 2000, "--temperature", 0) as process:  # drawn ones may be short
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 130
    answer = stored(pagekeep, "c")[-1]
    assert answer.state == "cancelled"
    assert answer.text


@pytest.mark.parametrize("how", [("--resume",), ("--edit", 1, "-q", "Hi")])
def test_only_a_conversation_that_is_there_is_gone_on_with(pagekeep, starter_model: Path, how: tuple) -> None:
    error = pagekeep("ask", *how, "--conversation", "c", "--model", starter_model, "--json").error
    assert (error["what"], error["why"]) == ("There is no such conversation.", "None is called 'c'.")
    assert pagekeep("chat", "ls").out == ""


def test_a_conversation_that_another_process_continues_is_refused(pagekeep, starter_model: Path) -> None:
    store = ConversationStore(pagekeep.home / "data" / "conversations.db")
    conversation = store.create("c")
    with store.lease(conversation.id):
        error = pagekeep("ask", "-q", "Hi", "--conversation", "c", "--model", starter_model, "--json").error
    assert "another Pagekeep" in error["what"]
    assert store.messages(conversation.id) == ()
    store.close()


def test_the_cache_knows_the_conversation(pagekeep, book: Path, starter_model: Path) -> None:
    command = ("ask", book, "-q", "Which word?", "--conversation", "c", "--model", starter_model)
    told = pagekeep(*command, "--max-tokens", 3, "--json").json
    tokens, memory = told["tokens"], told["memory_bytes"]
    assert memory["weights"] > starter_model.stat().st_size // 2
    assert min(memory["state"] + memory["state_in_files"], memory["index"]) > 0
    (entry,) = pagekeep("cache", "ls", "--json").json["conversations"]
    assert entry["title"] == "c"
    assert "SmolLM2" in entry["model"].replace("Smollm2", "SmolLM2")
    assert entry["tokens"] == entry["tokens_saved"] == tokens["prompt"] + tokens["generated"] - 1
    assert pagekeep("cache", "verify", "--json").json["damaged"] == []


def test_overflow_is_told_and_stores_nothing(pagekeep, book: Path, starter_model: Path) -> None:
    command = ("ask", book, "-q", "Which?", "--mode", "whole", "--ctx", 256, "--conversation", "c")
    error = pagekeep(*command, "--model", starter_model, "--json").error
    assert "tokens" in error["what"]
    assert "long.pdf" in error["why"]
    assert "--mode retrieve" in error["next"]
    store = ConversationStore(pagekeep.home / "data" / "conversations.db")
    assert store.list() == (), "a new conversation in which nothing was asked is removed again"
    store.create("c")
    assert "--mode retrieve" in pagekeep(*command, "--model", starter_model, "--json").error["next"]
    found = store.find("c")
    store.close()
    assert found is not None
    assert stored(pagekeep, "c") == ()
    assert found.mode == "auto", "a mode that failed is not kept"


def test_two_processes_at_once_on_one_store(pagekeep, book: Path, starter_model: Path) -> None:
    common = ("--model", starter_model, "--temperature", 0)
    command = ("ask", book, "-q", "Tell a long story.", "--conversation", "a", "--max-tokens", 60, *common)
    with pagekeep.start(*command, "--json") as first:
        second = pagekeep("ask", book, "-q", "Which word?", "--conversation", "b", "--max-tokens", 4, *common, "--json")
        out, _ = first.communicate(timeout=200)
    assert first.returncode == 0
    assert out.count("\n") == 1
    assert second.json["tokens"]["generated"] == 4
    entries = pagekeep("cache", "ls", "--json").json["conversations"]
    assert {entry["title"] for entry in entries} == {"a", "b"}
    assert pagekeep("cache", "verify", "--json").json["damaged"] == []


def test_a_full_conversation_lists_its_ways_and_takes_one(pagekeep, starter_model: Path) -> None:
    common = ("--conversation", "c", "--model", starter_model, "--ctx", 256, "--max-tokens", 40, "--temperature", 0)
    first = pagekeep("ask", "-q", "Tell me about rivers and hills. " * 12, *common)
    assert first.status == 0, first.err
    long = ("ask", "-q", "Tell me about the mill. " * 12, *common)
    full = pagekeep(*long)
    assert full.status == 2
    for way in ("recompute", "fork", "larger"):
        assert f"--overflow {way}" in full.err
    told = pagekeep(*long, "--json").error
    assert "--overflow" in told["next"]
    ways = {way["way"]: way for way in told["ways"]}
    assert list(ways) == ["recompute", "shift", "fork", "larger"]
    assert not ways["recompute"]["approximate"]
    assert 0 < ways["recompute"]["tokens"] < ways["larger"]["tokens"] < 256 < ways["larger"]["context"]
    assert len({way["bytes"] / way["tokens"] for way in told["ways"]}) == 1
    assert ways["recompute"]["seconds"] > 0
    assert told["over_by"] > 0
    done = pagekeep(*long, "--overflow", "recompute", "--json").json
    assert done["tokens"]["prompt"] < 256
    assert done["approximate"] is False
    assert [m.in_context for m in stored(pagekeep, "c")] == [False, False, True, True]


def test_what_is_kept_is_told_in_words(pagekeep, book: Path, starter_model: Path) -> None:
    """`cache` with two conversations on one document: tables, where they part in words, pins, moves."""
    options = ("--model", starter_model, "--max-tokens", 4)
    written = {}
    for name, question in (("one", "Which word is on page two?"), ("two", "What is this about?")):
        written[name] = pagekeep("ask", book, "-q", question, "--conversation", name, *options, "--json").json
    saved = [e for e in pagekeep("cache", "log", "--json").json["entries"] if e["operation"] == "save"]
    assert [e["bytes"] for e in saved] == [done["bytes_written"] for done in written.values()]
    assert saved[0]["bytes"] > 0.9 * saved[0]["state_bytes"], "all pages of the first, not its end alone"
    assert pagekeep("cache", "pin", "one").status == 0
    assert "pinned" in pagekeep("cache", "rm", "one", "--json").error["what"], "it goes only by --force or unpinned"
    listed = pagekeep("cache", "ls").out.splitlines()
    assert listed[0].split()[:5] == ["conversation", "id", "what", "tokens", "on"]
    cells = sorted(tuple(filter(None, line.split("  "))) for line in listed[1:])
    assert [(row[0], row[2].strip(), row[-2].strip()) for row in cells] == [
        ("one", "pinned", "f16"),
        ("two", "-", "f16"),
    ]
    part = pagekeep("cache", "diff", "one", "two")
    assert "tokens in common" in part.out
    assert "message 1 (question), token 1 (token " in part.out, "within the question and in the whole"
    assert "“Which” in the first, “What” in the second" in part.out
    data = pagekeep("cache", "diff", "one", "two", "--json").json
    assert data["same"] is False
    assert data["difference"]["found"] == "What"
    assert "They are the same." in pagekeep("cache", "diff", "one", "one").out
    shown = pagekeep("cache", "show", "one").out
    assert "also used by" in shown
    assert "end" in shown.splitlines()[-1]
    assert "freed" in pagekeep("cache", "gc").out
    logged = pagekeep("cache", "log").out
    assert all(text in logged for text in ("one: save", "one: pin", "gc"))
    assert "in use" in pagekeep("cache", "stat").out
    pagekeep("chat", "delete", "two")
    two = next(e for e in pagekeep("cache", "ls", "--json").json["conversations"] if e["name"] == "two")
    assert (two["status"], two["kv_type"], two["approximate"]) == ("in the trash", "f16", False)
    assert "in the trash" in pagekeep("cache", "ls").out


def test_history_is_changed_by_number(pagekeep, starter_model: Path) -> None:
    options = ("--conversation", "c", "--model", starter_model, "--max-tokens", 4, "--temperature", 0)
    for question in ("Name a river.", "Is it long?", "Or deep?"):
        assert pagekeep("ask", "-q", question, *options).status == 0
    assert "Is it long?" in pagekeep("chat", "show", "c").out.splitlines()[2]
    fork = pagekeep("chat", "fork", "c", "--at", 2, "--name", "d", "--json").json
    assert (fork["title"], fork["again"]) == ("d", 0)
    assert len(pagekeep("chat", "show", "d", "--json").json["messages"]) == 2
    removed = pagekeep("chat", "remove", "c", "--at", 3, "--json").json
    assert (removed["messages"], removed["again"] > 0) == (2, True)
    shown = pagekeep("chat", "show", "c", "--json").json["messages"]
    assert [m["in_context"] for m in shown] == [True, True, False, False, True, True]
    assert pagekeep("chat", "undo", "c").status == 0
    assert all(m["in_context"] for m in pagekeep("chat", "show", "c", "--json").json["messages"])
    edited = pagekeep("ask", "-q", "Is it wide?", "--edit", 3, *options, "--json").json
    assert edited["difference"]["found"] == " wide"
    assert len(pagekeep("chat", "show", "c", "--json").json["messages"]) == 4
    assert pagekeep("chat", "undo", "c", "--json").json["set_aside"] == 2
    assert [m["text"] for m in pagekeep("chat", "show", "c", "--json").json["messages"]] == [m["text"] for m in shown]
    assert pagekeep("chat", "redo", "c").status == 0
    assert pagekeep("chat", "trim", "c", "--at", 2).status == 0
    assert len(pagekeep("chat", "show", "c", "--json").json["messages"]) == 2
    assert pagekeep("chat", "undo", "c").status == 0
    assert len(pagekeep("chat", "show", "c", "--json").json["messages"]) == 4
    assert pagekeep("chat", "show", "nobody", "--json").error["what"]
    assert pagekeep("cache", "rm", "c").status == 0
    assert re.search(r"as far as it is kept: \d+ tokens will be read again", pagekeep("chat", "fork", "c").out)
