from engine.kv.hiddens import HiddenCache
from engine.kv.losses import Losses
from engine.kv.notices import Notice, joined, stretches_words

DAMAGED = Notice("What.", "Damaged.", "Next.")


def losses() -> Losses:
    return Losses(None, None, None, HiddenCache())  # type: ignore[arg-type]


def lost(*stretches: tuple[int, int]) -> Notice:
    return Notice(DAMAGED.what, DAMAGED.why, DAMAGED.next, stretches)


def test_what_is_lost_is_told_once_and_only_after_all_is_read() -> None:
    made = losses()
    other = Notice("Full.", "The disk is full.", "Free some.")
    assert made.notices([lost((128, 256), (1152, 1280)), other], settled=False) == [other]
    made.met("k", [(128, 256), (1152, 1280)])
    assert made.notices([lost((1792, 1838)), lost((1792, 1819)), lost((128, 256))], settled=False) == []
    made.met("k", [(1792, 1838), (1792, 1819)])
    (told,) = made.notices([], settled=True)
    assert told.why == "Tokens 128 to 255, 1,152 to 1,279, 1,792 to 1,837 (302 in all): Damaged."
    assert told.conversation == "k"
    assert made.notices([], settled=True) == []


def test_each_conversation_has_its_own_and_what_is_of_none_is_told_too() -> None:
    made = losses()
    made.met("k", [(0, 10), (10, 20)])
    made.met("l", [(0, 10)])
    told = made.notices([lost((0, 10), (10, 20), (70, 80))], settled=True)
    assert [(notice.conversation, notice.why) for notice in told] == [
        ("k", "Tokens 0 to 19: Damaged."),
        ("l", "Tokens 0 to 9: Damaged."),
        ("", "Tokens 70 to 79: Damaged."),
    ]


def test_many_stretches_are_counted() -> None:
    assert joined([(5, 9), (0, 5), (20, 30)]) == [(0, 9), (20, 30)]
    assert stretches_words((n, n + 1) for n in range(0, 20, 2)) == (
        "Tokens 0 to 0, 2 to 2, 4 to 4, 6 to 6, 8 to 8, 10 to 10, 4 stretches more (10 in all)"
    )
