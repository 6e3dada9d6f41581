"""Questions about a document as such, and others that only look like them."""

import pytest

from rag.question_document import asks_about_document

ABOUT = """
Who wrote it?
Who wrote this paper?
who is the author
Who are the authors of this document?
Who is the editor of the manual?
Please tell me who wrote the book.
What is the title?
What is the title of this paper?
What is its version?
Which version is this?
When was it published?
When was this manual last updated?
In which year was the report written?
By whom was it written?
Who published the policy?
What is the publication date of avr-libc.pdf?
What kind of document is this?
What is this document?
What is this book called?
How old is this document?
Who maintains this document?
"""
OTHER = """
Who wrote the boot loader?
Who is the author of the GNU linker?
Who maintains a package that was orphaned?
What is the title field of a bibliography entry?
When was the interrupt vector table written to flash?
What is the version of GCC that is needed?
What is this register for?
When is it updated by hardware?
Who is the maintainer of a package, and what must they do?
How is the date of a file set?
What is the editor used for?
"""


@pytest.mark.parametrize("question", ABOUT.strip().splitlines())
def test_questions_about_a_document(question: str) -> None:
    assert asks_about_document(question)


@pytest.mark.parametrize("question", OTHER.strip().splitlines())
def test_questions_about_what_stands_in_it(question: str) -> None:
    assert not asks_about_document(question)
