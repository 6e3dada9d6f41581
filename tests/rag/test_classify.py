from rag.pdf.classify import Drawn, classify

PROSE = "Every reader has a private shelf, and a document is stored on it only once, whatever its name. " * 8


def test_prose_is_text_even_over_a_picture() -> None:
    assert classify(PROSE, Drawn(0.9)) == ("text", "")


def test_a_picture_with_a_stamp_is_a_scan() -> None:
    assert classify("Archive copy 17/03", Drawn(0.95))[0] == "scan"


def test_a_caption_beside_a_large_picture_is_mixed() -> None:
    kind, reason = classify("Figure 3: the harbour from the north, with both cranes and the ferry at noon.", Drawn(0.6))
    assert kind == "mixed"
    assert "picture" in reason


def test_private_use_letters_are_garbled() -> None:
    assert classify("\ue012\ue044\ue051 " * 40, Drawn(0.0))[0] == "garbled"


def test_an_old_thai_font_is_garbled_but_french_is_not() -> None:
    assert classify("¡¨èÒÂ¤ÇÒÁÃÙéà¡ÕèÂÇ¡Ñº " * 10, Drawn(0.0))[0] == "garbled"
    assert (
        classify("Où êtes-vous allé cet été, à l'île d'Oléron près de La Rochelle, déjà? " * 4, Drawn(0.0))[0] == "text"
    )


def test_nothing_is_empty() -> None:
    assert classify(" \n ", Drawn(0.1))[0] == "empty"


def test_a_plan_is_a_drawing_and_a_frame_is_not() -> None:
    assert classify("Ground floor, scale 1:100", Drawn(strokes=2400))[0] == "drawing"
    assert classify("Ground floor, scale 1:100", Drawn(strokes=12))[0] == "text"
    assert classify("", Drawn(strokes=900))[0] == "drawing"


def test_letters_that_spell_nothing_are_garbled() -> None:
    assert classify("7KHTXLFN EURZQIR[ MXPSV RYHU " * 4, Drawn(), unmapped=0.9)[0] == "garbled"
    assert classify("The formula needs one sign of another font. " * 3, Drawn(), unmapped=0.1)[0] == "text"
