from pathlib import Path

import pypdfium2
import pytest

from rag import Citation, Document, Library, Passage
from rag.cite import cite, claims
from rag.evidence import common_runs
from rag.pdf.text import clean
from tests.rag.pdf_files import write_pdf


@pytest.fixture
def context(library: Library, sample: Document) -> list[Passage]:
    """[1] the trash, [2] fees of guests, [3] opening hours."""
    questions = ("deleted conversation in the trash", "deposit of guests, day card", "desk open Tuesday Saturday")
    return [library.search(question)[0].passage for question in questions]


def stored(library: Library, citation: Citation) -> str:
    """What PDFium itself gives for the citation's ranges."""
    assert citation.document_id is not None
    pdf = pypdfium2.PdfDocument(library.document(citation.document_id).path)
    out = []
    for place in citation.ranges:
        page = pdf[place.page_index]
        textpage = page.get_textpage()
        out.append(clean(textpage.get_text_range(place.char_start, place.char_count))[0])
        textpage.close()
        page.close()
    pdf.close()
    return " ".join(" ".join(out).split())


def span(answer: str, citation: Citation) -> str:
    return answer[citation.answer_start : citation.answer_start + citation.answer_count]


def test_a_copied_part_is_exact_and_only_that_part(library: Library, context: list[Passage]) -> None:
    answer = "Whoever loses one may look: it is kept in the trash for 30 days and can be opened by its reader [1]."
    (citation,) = cite(answer, context, library)
    assert citation.verified == "exact"
    assert citation.quote == "is kept in the trash for 30 days and can be"
    assert stored(library, citation) == citation.quote == span(answer, citation)
    assert citation.page_labels == ("3",)


def test_a_copy_without_a_marker_is_found(library: Library, context: list[Passage]) -> None:
    (citation,) = cite("The desk is open from Tuesday to Saturday between 10:00 and 18:30.", context, library)
    assert (citation.verified, citation.marker) == ("exact", 3)
    assert stored(library, citation) == "The desk is open from Tuesday to Saturday between 10:00 and 18:30"


def test_a_copy_that_goes_on_with_another_number_is_not_exact(library: Library, context: list[Passage]) -> None:
    (citation,) = cite("A deleted conversation is kept in the trash for 2 weeks.", context, library)
    assert citation.verified == "altered"


@pytest.mark.parametrize(
    "answer",
    [
        "A deleted conversation is kept in the bin for 60 days and can be restored from there with all its answers.",
        "a DELETED conversation IS kept IN the TRASH for 30 DAYS AND can BE restored.",
    ],
)
def test_a_changed_quotation_is_altered_not_exact(library: Library, context: list[Passage], answer: str) -> None:
    (citation,) = cite(answer, context, library)
    assert citation.verified == "altered"
    assert "kept in the trash for 30 days" in stored(library, citation)


def test_a_paraphrase_is_matched_to_its_sentence(library: Library, context: list[Passage]) -> None:
    answer = "Deleted conversations stay restorable from the trash for 30 days."
    (citation,) = cite(answer, context, library)
    assert (citation.verified, citation.marker) == ("matched", 1)
    quote = stored(library, citation)
    assert quote.startswith("A deleted conversation is kept")
    assert quote.endswith("answers and citations.")


@pytest.mark.parametrize(
    "answer",
    [
        "The moon is made of green cheese and orbits the harbour.",
        "Yes.",
        "The answer to this question is:",
        "How long is a deleted conversation kept in the trash?",
        "",
    ],
)
def test_what_the_text_does_not_say_gets_no_citation(library: Library, context: list[Passage], answer: str) -> None:
    assert cite(answer, context, library) == []


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("Deleted conversations stay restorable from the trash for 45 days.", "45"),
        ("Guests pay a deposit of 2.0 euros for the card.", "2.0"),
        ("It has been so since 1871, and 1872 too.", "1871"),
        ("12. Items are counted\n13. and so is this, of 1,024", "1,024"),
        ("Whoever asks of 77 guests, in 2 rooms, gets 20 euros back.", ""),
        ("The desk is open from 10:00 to 18:30, see pagekeep-sample.pdf, x86 and the 2nd page.", ""),
    ],
)
def test_a_number_that_no_passage_has_is_told(
    library: Library, context: list[Passage], answer: str, number: str
) -> None:
    found = cite(answer, context, library, question="What of 77 guests?")
    assert [span(answer, one) for one in found if not one.ranges] == ([number] if number else [])
    assert all((one.marker, one.verified) == (0, "not_found") for one in found if not one.ranges)


@pytest.mark.parametrize(
    "answer",
    [
        "Deleted conversations stay restorable from the trash for 45 days.",
        "Guests pay a deposit of 2.0 euros for the card.",
    ],
)
def test_a_sentence_with_another_number_is_matched_to_nothing(
    library: Library, context: list[Passage], answer: str
) -> None:
    assert [one.quote for one in cite(answer, context, library) if one.ranges] == []


def test_numbers_of_the_file_and_of_earlier_questions_are_not_invented(
    library: Library, context: list[Passage], sample: Document
) -> None:
    created = sample.metadata["created"]
    answer = f"The file was created on {created}."
    assert cite(answer, context, library) == []
    (invented,) = cite("It was created on 1987-06-05.", context, library)
    assert invented.verified == "not_found"
    said = "You have 83 guests, as you said."
    assert [span(said, one) for one in cite(said, context, library)] == ["83"]
    assert cite(said, context, library, told=("We are 83 guests.",)) == []


@pytest.mark.parametrize("answer", ["This is a deleted conversation in the trash", "So, the trash can be restored."])
def test_a_few_words_are_not_matched(library: Library, context: list[Passage], answer: str) -> None:
    assert cite(answer, context, library) == []
    assert [c.verified for c in cite(f"{answer} [1]", context, library)] == ["matched"]


def test_a_sentence_that_was_cut_off_is_not_matched(library: Library, context: list[Passage]) -> None:
    whole = "Deleted conversations stay restorable from the trash for 30 days."
    fragment = whole.removesuffix(".")
    assert len(cite(fragment, context, library)) == 1, "an answer that ended may go without its full stop"
    assert cite(fragment, context, library, cut=True) == []
    assert len(cite(whole, context, library, cut=True)) == 1
    assert len(cite(f"{whole} {fragment}", context, library, cut=True)) == 1
    assert len(cite(f"{fragment} [1]", context, library, cut=True)) == 1
    assert cite("This is a deleted conversation in [1]", context, library, cut=True) == []
    copied = "It is kept in the trash for 30 days and can be"
    assert [c.verified for c in cite(copied, context, library, cut=True)] == ["exact"]


def test_an_invented_marker_is_not_found(library: Library, context: list[Passage]) -> None:
    answer = "The library was founded in 1871 [7]."
    (citation,) = cite(answer, context, library)
    assert (citation.marker, citation.verified, citation.ranges, citation.document_id) == (7, "not_found", (), None)
    assert span(answer, citation) == "[7]"


def test_a_marker_on_the_wrong_passage_is_told_and_the_right_one_given(
    library: Library, context: list[Passage]
) -> None:
    answer = "A deleted document is kept for 90 days in this library [2]."
    wrong, right = cite(answer, context, library)
    assert (wrong.marker, wrong.verified, wrong.document) == (2, "not_found", "pagekeep-sample.pdf")
    assert (right.marker, right.verified) == (1, "altered"), "of this library it says nothing"


def test_several_markers_and_ids_of_ones_own(library: Library, context: list[Passage]) -> None:
    answer = "The deposit is 20 euros for a day card [12]. Closed on Mondays, when the machine is cleaned [13, 14]."
    found = cite(answer, {11: context[0], 12: context[1], 13: context[2]}, library)
    assert [(c.marker, c.verified) for c in found] == [(12, "matched"), (14, "not_found"), (13, "exact")]


def test_each_quote_of_a_sentence_is_checked(library: Library, context: list[Passage]) -> None:
    answer = (
        'It says "kept in the trash for 30 days" and also "from Tuesday to Saturday between 10:00 and 18:30" clearly.'
    )
    found = cite(answer, context, library)
    assert [(c.marker, c.verified) for c in found] == [(1, "exact"), (3, "exact")]
    assert [span(answer, c) for c in found] == [c.quote for c in found]


def test_an_invented_quote_beside_a_good_one_is_told(library: Library, context: list[Passage]) -> None:
    answer = 'It says "kept in the trash for 30 days" [1] and "no card is ever given back at all" [2].'
    good, bad = cite(answer, context, library)
    assert (good.verified, good.marker, span(answer, good)) == ("exact", 1, "kept in the trash for 30 days")
    assert (bad.verified, bad.marker, bad.ranges) == ("not_found", 2, ())
    assert span(answer, bad) == "no card is ever given back at all"


def test_quotations_claim_to_stand_in_a_passage(library: Library, context: list[Passage]) -> None:
    for answer, *verdicts in (
        ("The agreement says “no card is ever given back at all”.", (0, "not_found")),
        ("Die Regel lautet „niemand darf hier lesen“.", (0, "not_found")),
        ('It is "no card ever" [2].', (2, "not_found")),
        ('It asks for "a day card" first.', (2, "exact")),
        ('The "deleted … with all its answers and citations" is one.', (1, "exact")),
        ('"Closed on Mondays" it is.', (3, "exact")),
        ('It says "is kept in the trash for 30 days and is burnt".', (1, "altered")),
        ('You asked about "cards that are lost" there.',),
        ('This is a "golden card".',),
        ('Run `print("no card is ever given back")` there.',),
        ('Two 5" disks and a 3" one.',),
    ):
        found = cite(answer, context, library, question="What of cards that are lost?")
        assert [(c.marker, c.verified) for c in found] == verdicts, answer


def test_a_marker_behind_the_full_stop_belongs_to_the_sentence_before() -> None:
    first, second = claims("The first. [1] The second [2][3].")
    assert [number for number, _ in first.markers] == [1]
    assert [number for number, _ in second.markers] == [2, 3]


def test_a_marker_at_the_start_of_a_line_belongs_to_what_follows() -> None:
    first, second, third = claims("The answer is:\n\n[1] Guests pay 20 euros.\n- [2] Nothing else.")
    assert [len(claim.markers) for claim in (first, second, third)] == [0, 1, 1]
    assert (second.markers[0][0], third.markers[0][0]) == (1, 2)


def test_a_single_word_is_matched_only_in_the_passage_it_is_marked_with(
    library: Library, context: list[Passage]
) -> None:
    (citation,) = cite("Mondays [3]", context, library)
    assert (citation.verified, citation.marker) == ("matched", 3)
    assert stored(library, citation).startswith("It is closed on Mondays")
    assert cite("Mondays", context, library) == []


def test_words_about_answering_do_not_hide_the_answer(library: Library, context: list[Passage]) -> None:
    (citation,) = cite("The answer to this question is: 20 euros.", context, library)
    assert (citation.verified, citation.marker) == ("matched", 2)


def test_a_markdown_link_is_no_marker() -> None:
    (claim,) = claims("See [1](http://example.org) for more.")
    assert claim.markers == ()


def test_every_exact_citation_of_a_whole_document_stands_there(library: Library, sample: Document) -> None:
    passages = library.passages(sample.id)
    answer = " ".join(" ".join(passage.text.split()) for passage in passages[::2])
    found = [citation for citation in cite(answer, passages, library) if citation.verified == "exact"]
    assert len(found) > 20
    for citation in found:
        assert stored(library, citation) == citation.quote
        assert " ".join(span(answer, citation).split()) == citation.quote


def test_common_runs() -> None:
    theirs = ["x", "a", "b", "c", "d", "e", "f", "g", "y", "a", "b", "c", "d", "e", "f"]
    assert sorted(common_runs(["a", "b", "c", "d", "e", "f", "g"], theirs)) == [(0, 1, 7), (0, 9, 6)]
    assert list(common_runs(["a", "b", "c", "d", "e"], theirs)) == []


def test_items_of_a_list_are_claims_of_their_own() -> None:
    answer = "- Keys cost twelve euros [1]\n- Desks cost thirty euros [2]\n  2) Chairs are free [3]"
    assert [[number for number, _ in claim.markers] for claim in claims(answer)] == [[1], [2], [3]]
    assert answer[slice(*claims(answer)[1].span)].startswith("- Desks cost thirty euros")


@pytest.fixture
def noted(library: Library, tmp_path: Path) -> list[Passage]:
    """Two passages of a text with footnotes of its own, [4] and [8]."""
    pages = [
        ["The heap grows towards higher addresses. Note [4]: the stack grows the other way."],
        ["Note [8]:", "Interrupts are kept off while the table is written, and the timer waits."],
    ]
    document = library.add(write_pdf(tmp_path / "notes.pdf", pages))
    return library.passages(document.id)


def test_a_footnote_of_the_document_is_no_citation(library: Library, noted: list[Passage]) -> None:
    answer = "Note [4]: the stack grows the other way."
    (citation,) = cite(answer, noted, library)
    assert (citation.marker, citation.verified) == (1, "exact")


def test_a_footnote_with_the_number_of_a_passage_is_no_citation_either(library: Library, noted: list[Passage]) -> None:
    numbered = {8: noted[0], 9: noted[-1]}
    assert cite("Note [8]:", numbered, library) == []
    (citation,) = cite("The heap grows towards higher addresses [8].", numbered, library)
    assert (citation.marker, citation.verified) == (8, "exact")


def test_a_mark_of_a_footnote_matches_nothing(library: Library, noted: list[Passage]) -> None:
    found = cite("Note it well [1]. A note [2].", noted, library)
    assert [one.verified for one in found] == ["not_found", "not_found"]
