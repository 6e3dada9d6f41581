"""What the command line refuses before anything is opened."""

import pytest

from app.cli.ask import check_question
from app.cli.parser import build_parser
from app.core.errors import UserError

ASK = ("ask", "-q", "x")
LOGITS = ("model", "logits", "m.gguf", "--tokens", "t.json", "--out", "o.npz")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ((*LOGITS, "--greedy", "-1"), "must be 0 or more"),
        ((*ASK, "--temperature", "-1"), "must be at least 0"),
        ((*ASK, "--temperature", "nan"), "must be at least 0"),
        ((*ASK, "--temperature", "inf"), "must be at least 0"),
        ((*ASK, "--temperature", "warm"), "'warm' is no number"),
        ((*ASK, "--seed", "-3"), "must be 0 or more"),
        ((*ASK, "--top-p", "1.5"), "must be at least 0 and at most 1"),
        ((*ASK, "--repetition-penalty", "0"), "at least 0.01"),
        ((*ASK, "--max-tokens", "many"), "'many' is no whole number"),
        ((*ASK, "--threads", "100000"), "must be 512 or less"),
        ((*ASK, "--overflow", "nonsense"), "'nonsense' is none of recompute, shift, fork, summary, larger"),
    ],
)
def test_numbers_out_of_range_are_named(command: tuple[str, ...], why: str) -> None:
    with pytest.raises(UserError) as caught:
        build_parser().parse_args(command)
    assert command[-2] in caught.value.what
    assert why in caught.value.why


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize(
    "command",
    [
        *[(*ASK, option) for option in ("--pages", "--chapter", "--collection")],
        *[("index", "search", "x", option) for option in ("--pages", "--chapter", "--collection", "--document")],
        ("index", "ocr", "a.pdf", "--pages"),
        ("index", "ls", "--collection"),
    ],
)
def test_an_empty_choice_is_not_taken_for_none(command: tuple[str, ...], empty: str) -> None:
    with pytest.raises(UserError) as caught:
        build_parser().parse_args((*command, empty))
    assert command[-1] in caught.value.what
    assert "It is empty" in caught.value.why


def test_sampling_options_replace_those_of_the_preferences() -> None:
    from app.cli.ask import _settings
    from app.core.settings import Settings

    given = ("--top-k", "7", "--top-p", "0.5", "--min-p", "0.1", "--presence-penalty", "-0.5", "--temperature", "0")
    options = build_parser().parse_args((*ASK, *given, "--stop", "END", "--stop", "."))
    sampling = _settings(Settings(), options).sampling
    assert (sampling.top_k, sampling.top_p, sampling.min_p, sampling.presence_penalty) == (7, 0.5, 0.1, -0.5)
    assert (sampling.temperature, sampling.stop) == (0.0, ("END", "."))
    assert sampling.repetition_penalty == Settings().sampling.repetition_penalty


@pytest.mark.parametrize(
    ("arguments", "sound"),
    [
        (["a.pdf", "-q", "Why?", "--pages", "10-20"], True),
        (["a.pdf"], False),
        (["--conversation", "X", "--resume"], True),
        (["--resume"], False),
        (["--conversation", "X", "--rest"], True),
    ],
)
def test_a_question_is_needed_unless_an_answer_is_gone_on_with(arguments: list[str], sound: bool) -> None:
    options = build_parser().parse_args(["ask", *arguments])
    if sound:
        check_question(options)
    else:
        with pytest.raises(UserError, match="no question"):
            check_question(options)


def test_the_way_with_a_summary_has_two_names() -> None:
    taken = [build_parser().parse_args((*ASK, "--overflow", way)).overflow for way in ("fork", "summary", "shift")]
    assert taken == ["fork", "fork", "shift"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--resume", "--overflow", "shift"], "--resume cannot be combined with --overflow"),
        (["--resume", "-q", "Why?", "--edit", "3"], "--resume cannot be combined with --question and --edit"),
        (["--resume", "--rest"], "--resume cannot be combined with --rest"),
        (["--rest", "--overflow", "fork", "-q", "Why?"], "--rest cannot be combined with --overflow"),
    ],
)
def test_what_would_have_no_effect_is_refused(arguments: list[str], said: str) -> None:
    options = build_parser().parse_args(["ask", "--conversation", "X", *arguments])
    with pytest.raises(UserError, match=said):
        check_question(options)


def test_names_that_look_like_options_stand_behind_two_dashes() -> None:
    options = build_parser().parse_args(("index", "add", "a.pdf", "--words-only", "--", "-b.pdf", "--c.pdf"))
    assert (options.files, options.words_only) == (["a.pdf", "-b.pdf", "--c.pdf"], True)
    with pytest.raises(UserError) as caught:
        build_parser().parse_args(("index", "add", "a.pdf", "--only", "--", "-b.pdf"))
    assert caught.value.what == "There is no option --only."
