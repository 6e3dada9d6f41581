from app.core.records import PhaseTimes
from app.core.totals import TurnTotals
from engine.messages import ComputedRange, ConversationId, ReusedTokens, Tokens, TurnFinished, TurnId, TurnTimings


def finished(reason: str, generated: int, computed: int, reused: ReusedTokens, prefill: float) -> TurnFinished:
    return TurnFinished(
        TurnId("t"),
        ConversationId("c"),
        reason,  # type: ignore[arg-type]
        "",
        Tokens.generated(range(generated)),
        reused.total + computed,
        reused,
        (ComputedRange(computed, "new"),),
        TurnTimings(prefill=prefill, decode=2.0, queue=5.0),
        0,
        0,
    )


def test_turns_are_added_up_by_origin_and_reason() -> None:
    totals = TurnTotals().with_turn(finished("stop", 7, 100, ReusedTokens(memory=20), 30.0), 100)
    totals = totals.with_turn(finished("stop", 3, 50, ReusedTokens(disk=10, of_which_shared=10), 10.0), 50)
    tokens = totals.tokens
    assert (tokens.prompt, tokens.generated) == (180, 10)
    assert tokens.reused == ReusedTokens(20, 10, 10)
    assert tokens.computed == (ComputedRange(150, "new"),)
    assert totals.times == PhaseTimes(prefill=40.0, decode=4.0)


def test_a_turn_stopped_while_it_read_counts_what_it_had_read() -> None:
    stopped = finished("cancelled", 0, 1000, ReusedTokens(memory=64), 12.0)
    assert TurnTotals().with_turn(stopped, 300).tokens.computed == (ComputedRange(300, "new"),)
    assert TurnTotals().with_turn(stopped, 300).tokens.prompt == 364
    assert TurnTotals().with_turn(stopped, 0).tokens.computed == ()
    writing = finished("cancelled", 2, 1000, ReusedTokens(), 12.0)
    assert TurnTotals().with_turn(writing, 1000).tokens.prompt == 1000
