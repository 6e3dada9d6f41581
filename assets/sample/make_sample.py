"""Makes pagekeep-sample.pdf: `python make_sample.py` with reportlab installed (needed for nothing else).

The text is this project's own. The document has what readers meet in real ones: front matter with roman page labels,
an outline of two levels, running heads, a table, a word broken at a line end, and facts that can be asked about.
"""

from __future__ import annotations

from pathlib import Path

from reportlab import rl_config
from reportlab.lib import colors
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph, Spacer, Table

TITLE = "The Reading Desk Agreement"
FRONT_PAGES = 3
BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10.5, leading=14, spaceAfter=6, alignment=4)
LEFT = ParagraphStyle("left", parent=BODY, alignment=0)
CHAPTER = ParagraphStyle("chapter", fontName="Helvetica-Bold", fontSize=15, leading=19, spaceAfter=10)
SECTION = ParagraphStyle("section", fontName="Helvetica-Bold", fontSize=11, leading=15, spaceBefore=8, spaceAfter=4)
COVER = ParagraphStyle("cover", fontName="Helvetica-Bold", fontSize=24, leading=30, spaceBefore=60 * mm)

FRONT = [
    ("cover", TITLE),
    ("left", "Rules and explanations for the readers of the Linden Street Library who work at its "
             "Pagekeep desk. Fourth edition."),
    ("break", ""),
    ("chapter", "Contents"),
    ("left", "1 What the desk is for . . . . . . . . . . . . 1<br/>"
             "2 Booking the desk . . . . . . . . . . . . . . 2<br/>"
             "3 Documents and conversations . . . . . . 3<br/>4 How answers are checked . . . . . . . . . 4<br/>"
             "5 Fees . . . . . . . . . . . . . . . . . . . . . . . . . 5<br/>"
             "6 Privacy and the end of the agreement . . 6<br/>"
             "Appendix A Words used here . . . . . . . . . 7"),
    ("break", ""),
    ("chapter", "Preface"),
    ("body", "The Linden Street Library keeps one computer for readers who have a long document and little time. "
             "It runs Pagekeep, a program that reads a PDF, answers questions about it, and shows the place in the "
             "document that bears each answer out. Nothing leaves the machine: the model, the documents and the "
             "conversations stay on its disk."),
    ("body", "This booklet says who may use the desk, what it costs, how long things are kept, and what an answer "
             "of the program is worth. It is short on purpose. Please read chapter 4 before you rely on anything "
             "the program tells you."),
]  # fmt: skip

CHAPTERS = [
    ("1 What the desk is for", [
        ("body", "The desk is meant for documents that nobody reads from cover to cover: contracts, statutes, "
                 "manuals, theses, minutes of many years. A reader drops the file on the window and asks. The first "
                 "answer may take a while, because the program has to read the pages once. It keeps what it has "
                 "read, so the second question, and the question you come back with next week, start at once."),
        ("section", "1.1 What it is not for"),
        ("body", "The desk does not replace a lawyer, a physician or a librarian. It does not translate whole books, "
                 "and it does not read handwriting. Scanned pages without a text layer are listed in the intake "
                 "report as pages that could not be read; the program never pretends to have read them."),
        ("section", "1.2 Who may use it"),
        ("body", "Anybody with a valid library card who is at least fourteen years old may use the desk. Guests "
                 "receive a day card at the counter against a deposit of 20 euros, which is paid back in full when "
                 "the card is returned on the same day."),
    ]),
    ("2 Booking the desk", [
        ("body", "The desk can be booked up to three weeks ahead, at the counter or by telephone. One booking lasts "
                 "two hours and may be extended once by one hour if nobody is waiting. Whoever is more than fifteen "
                 "minutes late loses the booking."),
        ("section", "2.1 Opening hours"),
        ("body", "The desk is open from Tuesday to Saturday between 10:00 and 18:30. It is closed on Mondays, when "
                 "the machine is cleaned and its index is backed up, and during the last two weeks of August."),
        # The first line ends in a broken word, as typeset books have it.
        ("left", "Readers who need a quiet room may ask for the small studio, which has a second comp-<br/>"
                 "uter with the same library of documents. The studio holds two people."),
        ("section", "2.2 If the machine fails"),
        ("body", "If the program stops in the middle of an answer, start it again: the part that was written is "
                 "kept, and so is what had been read of the document. If the machine itself fails, the librarian on "
                 "duty gives you a new booking free of charge within the next five working days."),
    ]),
    ("3 Documents and conversations", [
        ("body", "Every reader has a private shelf. A document is stored once, even if it is added under two names, "
                 "because the program knows it by its contents. The shelf of one reader holds at most 40 documents "
                 "or 2 gigabytes, whichever is reached first."),
        ("section", "3.1 The trash"),
        ("body", "A deleted conversation is kept in the trash for 30 days and can be restored from there with all "
                 "its answers and citations. A deleted document is kept for 90 days. After that both are removed "
                 "for good, and the librarians cannot bring them back."),
        ("section", "3.2 Unused shelves"),
        ("body", "A shelf that nobody has opened for eighteen months is put into an archive. The owner is told by "
                 "letter six weeks before. An archived shelf can be called back within one working day."),
        ("section", "3.3 What may not be added"),
        ("body", "Documents that the reader has no right to copy may not be put on the shelf. A file protected by a "
                 "password is accepted if the reader types the password; a file that merely forbids printing is "
                 "accepted as it is."),
    ]),
    ("4 How answers are checked", [
        ("body", "A language model can be wrong and sound certain. Therefore the program checks every answer against "
                 "the stored text before it shows where the answer comes from. There are four marks."),
        ("body", "<b>Exact</b> means that at least six words of the answer stand in the document in just this form. "
                 "<b>Altered</b> means that the answer is nearly a quotation but differs in some words. "
                 "<b>Matched</b> means that the program itself found a sentence that says much the same. "
                 "<b>Not found</b> means that the model named a passage that does not bear the sentence out."),
        ("section", "4.1 Page numbers"),
        ("body", "Page numbers are written by the program and never by the model. Where a document prints its own "
                 "numbers, such as the roman ones at the front of this booklet, both the printed number and the "
                 "position in the file are known, and a click on a citation opens the page at the passage."),
        ("section", "4.2 Your duty"),
        ("body", "Before you quote an answer in a letter or hand it in at school, open its citations and read them. "
                 "The library is not liable for damage caused by an answer that was used unread."),
    ]),
    ("5 Fees", [
        ("body", "The first two hours in a calendar week are free for card holders. Beyond that the fees of this "
                 "table apply. They are paid at the counter, in cash or by card, before the booking begins."),
        ("table", [
            ["Service", "Card holders", "Guests"],
            ["Desk, each further hour", "1.50 euros", "3.00 euros"],
            ["Studio, each hour", "4.00 euros", "7.50 euros"],
            ["Printing, one page", "0.10 euros", "0.15 euros"],
            ["Export of a shelf to a disk", "5.00 euros", "not offered"],
            ["Recall from the archive", "2.50 euros", "not offered"],
        ]),
        ("section", "5.1 Reductions"),
        ("body", "Pupils, students and holders of a social pass pay half of each fee. Teachers who prepare a lesson "
                 "at the desk pay nothing if they tell the counter the name of their school."),
        ("section", "5.2 Refunds"),
        ("body", "A booking that is cancelled at least 24 hours before it begins is refunded in full. Later than "
                 "that, the library keeps one half."),
    ]),
    ("6 Privacy and the end of the agreement", [
        ("body", "The librarians cannot see what readers ask. The program sends nothing over the network and writes "
                 "no text of documents or conversations into its log. Files on the disk can be opened only by the "
                 "reader to whom the shelf belongs."),
        ("section", "6.1 Ending the agreement"),
        ("body", "The reader may end this agreement at any time, without giving reasons, by handing in the desk key. "
                 "The library may end it with four weeks' notice, or at once if the reader has damaged the machine "
                 "on purpose. When the agreement ends, the shelf is deleted after ten days unless the reader asks "
                 "for an export first."),
        ("section", "6.2 Complaints"),
        ("body", "Complaints are answered in writing within twelve working days. If the answer does not satisfy you, "
                 "the board of the library decides at its next meeting, which you may attend."),
    ]),
    ("Appendix A Words used here", [
        ("body", "<b>Shelf</b>: the documents of one reader together with everything the program has made of them."),
        ("body", "<b>Conversation</b>: a series of questions and answers about one or more documents."),
        ("body", "<b>Passage</b>: a part of a page of about two hundred words, the unit in which the program "
                 "searches."),
        ("body", "<b>Intake report</b>: a list that says of each page whether its text could be read, and if not, "
                 "why."),
        ("body", "<b>Desk key</b>: the plastic token that unlocks the screen. A lost key costs 12 euros."),
    ]),
]  # fmt: skip


class SampleDocument(BaseDocTemplate):
    """Adds outline entries for headings as they are placed."""

    def afterFlowable(self, flowable: object) -> None:
        style = getattr(getattr(flowable, "style", None), "name", "")
        if style in ("chapter", "section"):
            title = flowable.getPlainText()  # type: ignore[attr-defined]
            key = f"{self.page}-{title}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(title, key, 0 if style == "chapter" else 1, closed=False)


def running_head(canvas: Canvas, document: BaseDocTemplate) -> None:
    page = canvas.getPageNumber()
    if page == 1:
        return
    canvas.setFont("Helvetica", 8)
    canvas.drawString(18 * mm, 198 * mm, TITLE)
    number = {2: "ii", 3: "iii"}.get(page, str(page - FRONT_PAGES))
    canvas.drawRightString(130 * mm, 198 * mm, number)


def flowable(kind: str, value: object) -> object:
    if kind == "break":
        return PageBreak()
    if kind == "table":
        return fee_table(value)
    styles = {"cover": COVER, "chapter": CHAPTER, "section": SECTION, "body": BODY, "left": LEFT}
    return Paragraph(str(value), styles[kind])


def fee_table(rows: object) -> Table:
    table = Table(rows, colWidths=[52 * mm, 30 * mm, 28 * mm], spaceBefore=4, spaceAfter=10)
    table.setStyle([
        ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 9),
        ("FONT", (0, 1), (-1, -1), "Times-Roman", 10),
        ("LINEBELOW", (0, 0), (-1, 0), 0.8, colors.black),
        ("LINEBELOW", (0, 1), (-1, -1), 0.25, colors.grey),
    ])  # fmt: skip
    return table


def story() -> list[object]:
    flow = [flowable(kind, value) for kind, value in FRONT]
    for title, parts in CHAPTERS:
        flow += [PageBreak(), flowable("chapter", title), *(flowable(kind, value) for kind, value in parts)]
    return [Spacer(1, 1), *flow]


def label_pages(canvas: Canvas) -> None:
    canvas.addPageLabel(0, style="ROMAN_LOWER")
    canvas.addPageLabel(FRONT_PAGES, style="ARABIC")


def main() -> None:
    rl_config.invariant = 1
    target = Path(__file__).with_name("pagekeep-sample.pdf")
    document = SampleDocument(str(target), pagesize=A5, title=TITLE, author="Pagekeep", pageCompression=1)
    frame = Frame(16 * mm, 12 * mm, 116 * mm, 182 * mm, id="page")
    document.addPageTemplates([PageTemplate("page", [frame], onPage=running_head)])
    document.beforeDocument = lambda: label_pages(document.canv)
    document.build(story())


if __name__ == "__main__":
    main()
