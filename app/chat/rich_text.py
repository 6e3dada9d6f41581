"""Widgets for the blocks of an answer: prose, code with a copy button, tables that scroll by themselves."""

from __future__ import annotations

import math
import re

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QFocusEvent, QFont, QFontDatabase, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QSizePolicy,
    QTextBrowser,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.highlight import code_html
from app.chat.markdown import Block, Code, Prose, Table
from app.widgets.cards import label
from app.widgets.theme import Theme

_PROSE_CSS = """
p { margin-top: 0; margin-bottom: 5px; line-height: 140%; }
li { margin-bottom: 3px; line-height: 135%; }
ul, ol { margin-top: 0; margin-bottom: 5px; }
blockquote { margin-left: 12px; color: @muted; }
h1, h2 { font-size: large; font-weight: 600; margin-top: 10px; margin-bottom: 6px; }
h3, h4, h5, h6 { font-size: medium; font-weight: 600; margin-top: 8px; margin-bottom: 4px; }
code { background-color: @code_bg; font-family: monospace; }
a { color: @accent; text-decoration: none; }
a.cite { color: @accent; background-color: @accent_soft; font-weight: 600; }
table { border-collapse: collapse; border-color: @line_strong; margin-bottom: 4px; }
th { background-color: @raised; text-align: left; font-weight: 600; }
"""


def prose_css(theme: Theme) -> str:
    """The part of CSS that QTextDocument understands."""
    return re.sub(r"@(\w+)", lambda match: theme.colors[match[1]], _PROSE_CSS)


class RichText(QTextBrowser):
    """HTML as tall as its content; scrolling belongs to the transcript around it.

    Signals:
        link: a link was activated (argument: its address).
    """

    link = Signal(str)

    def __init__(self, theme: Theme, wrap: bool = True) -> None:
        super().__init__()
        self.setObjectName("rich")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setUndoRedoEnabled(False)
        self.setAcceptDrops(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the message around it has one
        self.document().setDocumentMargin(0)
        self.document().setIndentWidth(22)
        self.document().setDefaultStyleSheet(prose_css(theme))
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._wrap = wrap
        if wrap:
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        else:
            self.setLineWrapMode(QTextBrowser.LineWrapMode.NoWrap)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.anchorClicked.connect(self._activated)

    def show_html(self, text: str) -> None:
        """Tab stops only where keys can do something: at links, and at what is wider than its place."""
        stops = "<a " in text or not self._wrap
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if stops else Qt.FocusPolicy.ClickFocus)
        self.setHtml(text)
        self.updateGeometry()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._content_height(width)

    def sizeHint(self) -> QSize:
        return QSize(min(math.ceil(self.document().idealWidth()) + 2, 900), self._content_height(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, 10)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show_focus(event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason))

    def _show_focus(self, by_key: bool) -> None:
        """Who clicks sees what was clicked."""
        if by_key != bool(self.property("tabbed")):
            self.setProperty("tabbed", by_key)
            self.style().unpolish(self)
            self.style().polish(self)

    def wheelEvent(self, event: QWheelEvent) -> None:
        sideways = abs(event.angleDelta().x()) > abs(event.angleDelta().y())
        if sideways and not self._wrap:
            super().wheelEvent(event)
        else:
            event.ignore()

    def _content_height(self, width: int) -> int:
        document = self.document()
        if self._wrap and abs(document.textWidth() - width) > 0.5:
            document.setTextWidth(width)
        height = math.ceil(document.size().height())
        bar = self.horizontalScrollBar()
        return height + (bar.sizeHint().height() if not self._wrap and document.idealWidth() > width else 0)

    def _activated(self, url: QUrl) -> None:
        self.link.emit(url.toString())


class CodeBlock(QWidget):
    """Code in a fixed-width font with its language and a copy button."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("code")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._text = ""
        self._language = label("", "muted", wrap=False)
        self._copy = QToolButton(icon=theme.icon("copy"), toolTip="Copy code")
        self._copy.setAccessibleName("Copy code")
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text))
        self._body = RichText(theme, wrap=False)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPointSizeF(max(8.0, self.font().pointSizeF() - 0.5))
        self._body.setFont(font)
        head = QHBoxLayout()
        head.addWidget(self._language)
        head.addStretch()
        head.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 4, 6, 10)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self._body)

    def show_code(self, code: Code) -> None:
        self._text = code.text
        self._language.setText(code.language or "text")
        self._body.show_html(code_html(code.text, code.language, self._theme.is_dark))
        self._body.setAccessibleName(f"code, {code.language or 'text'}")


class BlockView(QWidget):
    """One block of an answer; `show_block` changes it in place while its kind stays the same.

    Signals:
        link: as RichText.link.
    """

    link = Signal(str)

    def __init__(self, theme: Theme, block: Block) -> None:
        super().__init__()
        self._theme = theme
        self._kind = type(block)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._body = self._make(block)
        layout.addWidget(self._body)
        self.show_block(block)

    def takes(self, block: Block) -> bool:
        return type(block) is self._kind

    def show_block(self, block: Block) -> None:
        if isinstance(block, Code) and isinstance(self._body, CodeBlock):
            self._body.show_code(block)
        elif isinstance(block, Prose | Table) and isinstance(self._body, RichText):
            self._body.show_html(block.html)

    def _make(self, block: Block) -> QWidget:
        if isinstance(block, Code):
            return CodeBlock(self._theme)
        made = RichText(self._theme, wrap=isinstance(block, Prose))
        made.link.connect(self.link)
        return made
