import random

from engine.drafts import LONGEST_MATCH, SHORTEST_MATCH, Draft, DraftSource


def plain_search(ids: list[int], most: int) -> Draft:
    """The definition, looked at place by place."""
    best = Draft()
    for end in range(1, len(ids)):
        length = 0
        while length < min(end, LONGEST_MATCH) and ids[end - 1 - length] == ids[-1 - length]:
            length += 1
        if length >= max(SHORTEST_MATCH, best.match):
            best = Draft(tuple(ids[end : end + most]), length)
    return best


def test_the_latest_of_the_longest_matches_is_continued() -> None:
    source = DraftSource([5, 1, 2, 3, 7, 2, 3, 8, 1, 2, 3, 9])
    assert source.find([4, 1, 2, 3], 2) == Draft((9, 4), 3)
    assert source.find([4, 1, 2, 3, 7, 2], 3) == Draft((3, 8, 1), 5)


def test_a_single_token_is_no_match_and_nothing_is_drafted_where_nothing_may_be() -> None:
    source = DraftSource([1, 2, 3])
    assert source.find([3], 4) == Draft()
    assert source.find([3, 2, 3], 0) == Draft()
    assert DraftSource([]).find([1], 4) == Draft()


def test_random_texts_agree_with_the_definition_while_they_grow() -> None:
    chance = random.Random(3)
    for _ in range(20):
        prompt = chance.choices(range(4), k=chance.randint(0, 60))
        answer: list[int] = []
        source = DraftSource(prompt)
        for _ in range(chance.randint(1, 40)):
            answer += chance.choices(range(4), k=chance.randint(1, 3))
            if len(prompt) + len(answer) > SHORTEST_MATCH:
                assert source.find(answer, 5) == plain_search(prompt + answer, 5)


def test_an_answer_longer_than_the_room_is_kept_whole() -> None:
    answer = [token % 700 for token in range(1500)]
    assert DraftSource(range(1000, 1100)).find(answer, 3) == Draft((100, 101, 102), LONGEST_MATCH)
