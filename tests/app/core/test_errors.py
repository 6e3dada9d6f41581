"""What programs are told about a question that does not fit."""

from __future__ import annotations

from app.core.errors import DoesNotFit
from engine.overflow import OverflowOption


def test_where_a_document_was_to_be_read_whole_its_passages_are_a_way_too() -> None:
    refused = OverflowOption("larger", (0, 0), 0, 0, 0, 0.0, True, "The model has no room.")
    ways = [DoesNotFit("", "", "", whole, (refused,)).to_json()["ways"] for whole in (True, False)]
    assert [[way["way"] for way in listed if not way["refused"]] for listed in ways] == [["retrieve"], []]
    assert ways[0][0].keys() == ways[1][0].keys()
