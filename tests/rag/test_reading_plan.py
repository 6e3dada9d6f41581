import random

import pytest

from rag import Document, DocumentId, Library, Passage
from rag.reading_plan import ReadingPlan, reading_plan


def words(text: str) -> int:
    return len(text.split())


def made(headings: list[str], sizes: list[int]) -> list[Passage]:
    return [
        Passage(n, DocumentId(1), n, " ".join(["word"] * size), heading, ())
        for n, (heading, size) in enumerate(zip(headings, sizes, strict=True))
    ]


def check(plan: ReadingPlan, passages: list[Passage], budget: int) -> None:
    """Every passage once, in order, within the budget; the notes end in one."""
    covered = [n for part in plan.parts for n in range(part.first, part.last + 1)]
    assert covered == list(range(len(passages)))
    for part in plan.parts:
        assert part.tokens == sum(words(p.text) for p in passages[part.first : part.last + 1])
        assert part.tokens <= budget or part.first == part.last
    notes = len(plan.parts)
    for groups in plan.rounds:
        assert [n for group in groups for n in group] == list(range(notes))
        notes = len(groups)
    assert notes == min(1, len(passages))
    assert plan.tokens == sum(words(p.text) for p in passages)


def test_chapters_stay_together() -> None:
    headings = ["1 A", "1 A > 1.1", "1 A > 1.2", "2 B", "2 B > 2.1", "3 C", "3 C"]
    passages = made(headings, [40, 30, 20, 60, 50, 30, 20])
    plan = reading_plan(passages, 110, 30, words)
    check(plan, passages, 110)
    assert [(part.title, part.first, part.last) for part in plan.parts] == [
        ("1 A", 0, 2),
        ("2 B", 3, 4),
        ("3 C", 5, 6),
    ]
    assert plan.rounds == (((0, 1, 2),),)
    assert plan.steps == 4


def test_a_long_chapter_is_cut_at_its_sections() -> None:
    headings = ["1 A > 1.1"] * 3 + ["1 A > 1.2"] * 3 + ["2 B"]
    passages = made(headings, [30] * 6 + [10])
    plan = reading_plan(passages, 100, 50, words)
    check(plan, passages, 100)
    assert [part.title for part in plan.parts] == ["1 A > 1.1", ""]
    assert [part.title for part in reading_plan(passages[:6], 100, 50, words).parts] == ["1 A > 1.1", "1 A > 1.2"]


def test_what_fits_is_one_part() -> None:
    passages = made(["", "1 A"], [10, 10])
    plan = reading_plan(passages, 20, 5, words)
    assert (len(plan.parts), plan.rounds, plan.steps) == (1, (), 1)
    assert reading_plan([], 20, 5, words) == ReadingPlan((), ())


@pytest.mark.parametrize("seed", range(20))
def test_any_document(seed: int) -> None:
    chance = random.Random(seed)
    headings = sorted(
        " > ".join(str(chance.randrange(1, 5)) for _ in range(chance.randrange(4))) for _ in range(chance.randrange(60))
    )
    passages = made(headings, [chance.randrange(1, 90) for _ in headings])
    budget = chance.randrange(20, 200)
    check(reading_plan(passages, budget, chance.randrange(1, 60), words), passages, budget)


def test_the_sample(library: Library, sample: Document) -> None:
    passages = library.passages(sample.id)
    check(reading_plan(passages, 500, 100, words), passages, 500)
