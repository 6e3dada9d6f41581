from engine.messages import ComputedRange, ConversationId, Sampling, Submit, Tokens, TurnId
from engine.turn import explain_computed


def request(tokens: Tokens, history: int) -> Submit:
    return Submit(TurnId("t"), ConversationId("c"), tokens, Sampling(), history_tokens=history)


def test_a_second_turn_computes_the_last_sampled_token_and_what_is_new() -> None:
    tokens = Tokens.prompt(range(10)) + Tokens.generated(range(5)) + Tokens.prompt(range(7))
    ranges = explain_computed(request(tokens, history=14), 14, "not in cache")
    assert ranges == (ComputedRange(1, "last sampled"), ComputedRange(7, "new"))


def test_what_was_computed_once_and_is_gone_has_the_reason_of_its_loss() -> None:
    tokens = Tokens.prompt(range(10)) + Tokens.generated(range(5)) + Tokens.prompt(range(7))
    ranges = explain_computed(request(tokens, history=14), 8, "evicted")
    assert ranges == (ComputedRange(6, "evicted"), ComputedRange(1, "last sampled"), ComputedRange(7, "new"))


def test_a_first_turn_is_new_also_where_its_document_was_known() -> None:
    assert explain_computed(request(Tokens.prompt(range(20)), 0), 12, "not in cache") == (ComputedRange(8, "new"),)


def test_an_edited_history_is_recomputed_from_the_edit() -> None:
    tokens = Tokens.prompt(range(20))
    assert explain_computed(request(tokens, history=15), 5, "edited") == (
        ComputedRange(10, "edited"),
        ComputedRange(5, "new"),
    )
