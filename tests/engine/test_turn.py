from engine.kv.reasons import Missing, computed_ranges
from engine.messages import ComputedRange, ConversationId, Sampling, Submit, Tokens, TurnId


def request(tokens: Tokens, history: int) -> Submit:
    return Submit(TurnId("t"), ConversationId("c"), tokens, Sampling(), history_tokens=history)


def test_a_second_turn_computes_the_last_sampled_token_and_what_is_new() -> None:
    tokens = Tokens.prompt(range(10)) + Tokens.generated(range(5)) + Tokens.prompt(range(7))
    ranges = computed_ranges(request(tokens, history=14), [(14, 22)], Missing())
    assert ranges == (ComputedRange(1, "last sampled"), ComputedRange(7, "new"))


def test_what_was_computed_once_and_is_gone_has_the_reason_of_its_loss() -> None:
    tokens = Tokens.prompt(range(10)) + Tokens.generated(range(5)) + Tokens.prompt(range(7))
    ranges = computed_ranges(request(tokens, history=14), [(8, 22)], Missing("evicted", 7.0))
    assert ranges == (ComputedRange(6, "evicted", 7.0), ComputedRange(1, "last sampled"), ComputedRange(7, "new"))


def test_a_first_turn_is_new_also_where_its_document_was_known() -> None:
    assert computed_ranges(request(Tokens.prompt(range(20)), 0), [(12, 20)], Missing()) == (ComputedRange(8, "new"),)


def test_an_edited_history_is_recomputed_from_the_edit() -> None:
    tokens = Tokens.prompt(range(20))
    assert computed_ranges(request(tokens, history=15), [(5, 20)], Missing("edited")) == (
        ComputedRange(10, "edited"),
        ComputedRange(5, "new"),
    )


def test_what_was_never_saved_is_told_apart_from_what_was_lost() -> None:
    tokens = Tokens.prompt(range(20))
    assert computed_ranges(request(tokens, history=15), [(5, 20)], Missing("evicted", 7.0, saved=9)) == (
        ComputedRange(4, "evicted", 7.0),
        ComputedRange(6, "not saved"),
        ComputedRange(5, "new"),
    )
    assert computed_ranges(request(tokens, history=15), [(12, 20)], Missing("evicted", 7.0, 9, "stopped")) == (
        ComputedRange(3, "stopped"),
        ComputedRange(5, "new"),
    )


def test_what_was_lost_in_the_middle_is_told_by_its_place_also_where_what_follows_is_kept() -> None:
    tokens = Tokens.prompt(range(10)) + Tokens.generated(range(5)) + Tokens.prompt(range(7))
    damaged = Missing("damaged", 7.0)
    assert computed_ranges(request(tokens, history=14), [(4, 8)], damaged) == (ComputedRange(4, "damaged", 7.0),)
    assert computed_ranges(request(tokens, history=14), [(4, 8), (14, 22)], damaged) == (
        ComputedRange(4, "damaged", 7.0),
        ComputedRange(1, "last sampled"),
        ComputedRange(7, "new"),
    )
