from engine.answer import AnswerText, LateSource


class Letters:
    """Token = character code; the euro sign needs two tokens (0 then 1)."""

    def __init__(self) -> None:
        self.half = False

    def push(self, token: int) -> str:
        if token == 0:
            self.half = True
            return ""
        if token == 1:
            self.half = False
            return "€"
        return chr(token)

    def flush(self) -> str:
        return "\ufffd" if self.half else ""


def feed(text: str, stop: tuple[str, ...] = ()) -> tuple[list[str], AnswerText]:
    answer = AnswerText(Letters(), stop)
    shown = [answer.push(ord(letter)) for letter in text]
    return [*shown, answer.finish()], answer


def test_text_without_stop_strings_is_released_at_once() -> None:
    shown, answer = feed("abc")
    assert shown == ["a", "b", "c", ""]
    assert answer.text == "abc"


def test_a_character_is_never_broken() -> None:
    answer = AnswerText(Letters(), ())
    assert answer.push(0) == ""
    assert answer.push(1) == "€"
    answer.push(0)
    assert answer.finish() == "\ufffd"


def test_a_stop_string_over_several_tokens_is_cut_out() -> None:
    shown, answer = feed("one END two", ("END",))
    assert "".join(shown) == answer.text == "one "
    assert answer.stopped


def test_what_looks_like_a_stop_string_and_is_none_comes_out() -> None:
    shown, answer = feed("an ENormous EN", ("END", "STOP"))
    assert "".join(shown) == answer.text == "an ENormous EN"
    assert not answer.stopped


def test_the_earliest_of_several_stop_strings_counts() -> None:
    _, answer = feed("x\n\ny", ("y", "\n\n"))
    assert answer.text == "x"


def test_a_source_is_made_when_it_is_needed_and_goes_on_behind_what_was_shown() -> None:
    made: list[str] = []

    class Resumed(Letters):
        def resume(self, token_ids: tuple[int, ...]) -> None:
            made.append("".join(map(chr, token_ids)))
            self.half = True

    def answer() -> AnswerText:
        return AnswerText(LateSource(Resumed, lambda: (97, 98)), ())

    begun, stopped = answer(), answer()
    assert not made
    assert begun.push(ord("c")) == "c"
    assert made == ["ab"]
    assert stopped.finish() == "\ufffd", "what was begun before is ended without a token of its own too"
