from rag.layout import RunningLines, is_listing, lists_titles, title_form
from tests.rag.pdf_files import book


def fed(pages: list[str]) -> RunningLines:
    running = RunningLines()
    for number, text in enumerate(pages):
        running.add(number, text)
    return running


def test_heads_and_page_numbers_are_left_out() -> None:
    pages = [f"The Harbour Book {n}\n" + "\n".join(lines) for n, lines in enumerate(book(9))]
    running = fed(pages)
    for number, text in enumerate(pages):
        start, end = running.body(number, text)
        body = text[start:end]
        assert "Harbour Book" not in body
        assert f"page{number}mark" in body
        assert not body.rstrip().endswith(f"\n{number + 1}")


def test_heads_that_differ_on_every_page_are_known_by_their_numbers() -> None:
    heads = [
        f"Of the {word} trade {n + 7}" if n % 2 else f"{n + 7} Letters of {word}" for n, word in enumerate("abcdefghi")
    ]
    pages = ["\n".join([head, *lines[2:-1]]) for head, lines in zip(heads, book(9), strict=True)]
    running = fed(pages)
    assert [pages[n][slice(*running.body(n, pages[n]))].split("\n")[0] for n in range(9)] == [b[2] for b in book(9)]


def test_a_first_line_that_ends_in_some_number_stays() -> None:
    pages = [f"It was in the year {1871 + 3 * n}\n" + "\n".join(book(9)[n][1:-1]) for n in range(9)]
    pages = [page.replace("It was", f"It {'abcdefghi'[n]}") for n, page in enumerate(pages)]
    assert fed(pages).body(4, pages[4])[0] == 0


def test_a_line_that_comes_back_only_now_and_then_stays() -> None:
    first = ["Remark" if n in (0, 9, 19) else f"Own line of leaf {chr(97 + n)}" for n in range(20)]
    pages = ["\n".join([line, *(f"{line} and row {row}" for row in "abcd")]) for line in first]
    assert fed(pages).body(9, pages[9]) == (0, len(pages[9]))


def test_a_page_of_two_lines_keeps_them() -> None:
    pages = ["Title\nSubtitle"] * 5
    assert fed(pages).body(0, pages[0]) == (0, len(pages[0]))


def test_contents_and_index_pages_are_listings() -> None:
    contents = "\n".join(f"{n} Chapter about {w} . . . . . . {n * 7}" for n, w in enumerate("abcdefghij"))
    index = "\n".join(f"{word}, {n}, {n + 8}–{n + 9}" for n, word in enumerate(["anchor", "bridge", "candle"] * 4))
    assert is_listing(contents)
    assert is_listing(index)


def test_prose_and_tables_of_figures_are_not() -> None:
    assert not is_listing("\n".join(book(1)[0]))
    assert not is_listing("\n".join(f"Row {n} 0.{n * 37 % 100} {n * 7919 % 1000}" for n in range(30)))


def test_a_list_of_titles_without_page_numbers_is_a_listing() -> None:
    names = [f"How is part {letter} of the machine kept clean?" for letter in "ABCDEFGHIJ"]
    titles = frozenset(title_form(f"11.{number} {name}") for number, name in enumerate(names, 1))
    listed = "\n".join(["11.1 FAQ Index 47", *(f"{number}. {name}" for number, name in enumerate(names, 1))])
    assert lists_titles(listed, titles)
    assert not lists_titles(listed, frozenset()), "a numbered list that is no list of contents"
    answers = "\n".join(f"{name}\nWith oil.\nAnd a cloth, in the morning." for name in names)
    assert not lists_titles(answers, titles), "headings with their text"
