"""What of a comparison put together by a model is kept."""

from app.core.records import StoredCitation
from app.core.survey_compare import without_false

TEXT = "Both cost.\n- Keys: “Keys are made of gold.” [1]\n- Fees: paid in cash [2], and so on [9].\nThat is all [8]."


def cited(words: str, verdict: str) -> StoredCitation:
    return StoredCitation(1, None, "", (), (), "", verdict, TEXT.index(words), len(words))


def test_lines_that_only_quote_falsely_are_left_out() -> None:
    citations = (
        cited("Keys are made of gold.", "not_found"),
        cited("Fees: paid in cash", "exact"),
        cited("and so on", "not_found"),
        cited("That is all", "not_found"),
    )
    assert without_false(TEXT, citations) == "Both cost.\n- Fees: paid in cash [2], and so on [9]."
    assert without_false(TEXT, citations[1:2]) == TEXT
    for verdict in ("not_found", "altered"):
        beside_a_copy = (cited("Keys are made of gold.", verdict), cited("Keys:", "exact"))
        assert without_false(TEXT, beside_a_copy) == TEXT.replace(TEXT.split("\n")[1] + "\n", "")
    assert without_false(TEXT, (cited("Keys are made of gold.", "exact"),)) == TEXT
    assert without_false(TEXT.split("\n")[3], (StoredCitation(8, None, "", (), (), "", "not_found", 0, 4),)) == ""
