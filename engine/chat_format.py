"""ChatFormat: a model's chat template as append-only segments, so that no turn is ever rendered again.

A conversation is open, system text, first user open, user text, assistant open, answer, next user open,
user text, assistant open, answer, ... The template is probed with sentinel contents, what stands between
them is kept, and each segment is tokenised alone. Where the template's own rendering of n turns is no
prefix of that of n + 1, the segments of the first turn and of the step from the first to the second turn
are used throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date

from engine.chat_reasoning import OPEN, Mark, ReplyStream, marks_of
from engine.chat_sources import REASONING_VARIABLES, chat_templates, fallback_template, reasoning_choices
from engine.chat_template import CLOCK, ChatTemplate, Message
from engine.gguf import GgufFile
from engine.messages import Reasoning
from engine.tokenizer import Tokenizer

_SYSTEM = "Qzsystemzq"
_USERS = ("Qzuseronezq", "Qzusertwozq", "Qzuserthreezq")
_ANSWERS = ("Qzansweronezq", "Qzanswertwozq")
UNDATED = Date(2025, 1, 1)  # of prompts that no date was stored with
_NO_ROLE_GLUE = "\n\n"  # between system and user text where the template has no system role

# Ends a message in harmony (gpt-oss), whose end of turn is <|return|> when sampled and this in the history.
_MESSAGE_END = "<|end|>"


class _ProbeError(Exception):
    """The template renders, but not in the form of segments."""


@dataclass(frozen=True)
class Segments:
    """Template text around the contents. `system_role`: the template itself places a system text there."""

    open: str
    first_user_open: str
    first_user_open_alone: str
    assistant_open: str
    next_user_open: str
    system_role: bool
    trims_system: bool
    trims_user: bool

    def compose(self, system: str | None, users: Sequence[str], answers: Sequence[str]) -> str:
        """The conversation up to the point where the next answer starts; one user text more than answers."""
        text = self.first_user_open_alone if system is None else self.open + system + self.first_user_open
        for user, answer in zip(users, answers, strict=False):
            text += user + self.assistant_open + answer + self.next_user_open
        return text + users[-1] + self.assistant_open


class ChatFormat:
    """Immutable. Attributes:

    segments: the text form. append_only: whether the template's own renderings agree with it for up to three
    turns. end_of_turn: the token that closes an answer, None where there is none. marks: how the model sets reasoning
    apart, none where it does not reason. reasoning_choices: those the template takes. warnings: for the reader.
    stops: texts that end an answer, of the built-in form for models without an end of turn.
    `redated`: the same format with another date; None where the template shows none.
    """

    def __init__(
        self,
        segments: Segments,
        append_only: bool,
        tokenizer: Tokenizer,
        warnings: tuple[str, ...],
        marks: tuple[Mark, ...] = (),
        redated: Callable[[Date], ChatFormat] | None = None,
        reasoning_choices: tuple[Reasoning, ...] = (),
        stops: tuple[str, ...] = (),
    ) -> None:
        self.segments = segments
        self.append_only = append_only
        self.warnings = warnings
        self._tokenizer = tokenizer
        self.marks = marks
        self._redated = redated
        self.reasoning_choices = reasoning_choices
        self.stops = stops
        self._open = self._with_bos(self._template_ids(segments.open, continues=False))
        self._first = self._template_ids(segments.first_user_open)
        self._first_alone = self._with_bos(self._template_ids(segments.first_user_open_alone, continues=False))
        self._assistant = self._template_ids(segments.assistant_open)
        self._next = self._template_ids(segments.next_user_open)
        self._after_end = _behind_end(self._next, self._ends())
        ends = len(self._next) - len(self._after_end)
        self.end_of_turn: int | None = self._next[ends - 1] if ends else None

    @staticmethod
    def from_gguf(
        gguf: GgufFile,
        tokenizer: Tokenizer,
        *,
        date: Date = UNDATED,
        reasoning: Reasoning = "auto",
        variant: str = "default",
    ) -> ChatFormat:
        """Never fails: where the file has no template or it cannot be used, a built-in one and a warning.

        date: shown by templates that ask for today's; it belongs to the conversation or document prefix.
        reasoning: what the template does not take is left to it, as "auto" is.
        variant: one of engine.chat_sources.chat_templates.
        """
        sources = chat_templates(gguf)
        source = sources.get(variant) or sources.get("default")
        chosen, variables = REASONING_VARIABLES.get(reasoning), _variables(tokenizer)
        choices = reasoning_choices(source, variables, date)
        if chosen is not None and reasoning in choices:
            variables |= dict([chosen])
        return _format(source, tokenizer, variables, date, choices)

    def dated(self, date: Date) -> ChatFormat:
        """The format of a conversation that began on `date`; itself where the template does not ask for the date."""
        return self if self._redated is None else self._redated(date)

    @property
    def reasons(self) -> bool:
        """Whether answers may hold reasoning, which the reply stream sets between <think> and </think>."""
        return bool(self.marks)

    def reply_stream(self) -> ReplyStream:
        """A text source for one answer: reasoning in tags, control tokens left out."""
        inside = self.segments.assistant_open.rstrip().endswith(OPEN)
        return ReplyStream(self._tokenizer, self.marks, reasons=inside)

    def open_ids(self) -> list[int]:
        """What precedes the system text."""
        return list(self._open)

    def system_text_ids(self, text: str) -> list[int]:
        """The system text, tokenised alone, without control tokens."""
        return self._content_ids(text.strip() if self.segments.trims_system else text, self._open)

    def first_user_open_ids(self, has_system: bool = True) -> list[int]:
        """From the system text to the first user text; without a system text, all before the user text."""
        return list(self._first if has_system else self._first_alone)

    def text_ids(self, text: str) -> list[int]:
        """A user text, tokenised alone, without control tokens."""
        return self._content_ids(text.strip() if self.segments.trims_user else text, self._first)

    def assistant_open_ids(self) -> list[int]:
        """From a user text to the answer."""
        return list(self._assistant)

    def next_user_open_ids(self, ended_by_eog: bool) -> list[int]:
        """From an answer to the next user text; an end-of-turn token that was sampled already is left out."""
        return list(self._after_end if ended_by_eog else self._next)

    def _template_ids(self, text: str, *, continues: bool = True) -> list[int]:
        return self._tokenizer.encode(text, special=True, continues=continues)

    def _content_ids(self, text: str, glue: list[int]) -> list[int]:
        """Content behind `glue`: vocabularies that begin a text with a space do so only behind a control token."""
        continues = bool(glue) and not self._tokenizer.is_control(glue[-1])
        return self._tokenizer.encode(text, continues=continues)

    def _ends(self) -> set[int]:
        message_end = self._tokenizer.token_id(_MESSAGE_END)
        return set(self._tokenizer.eog_ids) | (set() if message_end is None else {message_end})

    def _with_bos(self, ids: list[int]) -> list[int]:
        bos = self._tokenizer.bos
        missing = self._tokenizer.add_bos and bos is not None and ids[:1] != [bos]
        return [bos, *ids] if missing and bos is not None else ids


def _format(
    source: str | None,
    tokenizer: Tokenizer,
    variables: Mapping[str, object],
    date: Date,
    choices: tuple[Reasoning, ...] = (),
) -> ChatFormat:
    if source is None:
        reason = "The model file has no chat template, as base models have none"
    else:
        redated = (lambda other: _format(source, tokenizer, variables, other, choices)) if CLOCK in source else None
        try:
            found, marks = _probed(ChatTemplate(source, date, variables)), marks_of(tokenizer, source)
            return ChatFormat(*found, tokenizer, (), marks, redated, choices)
        except Exception as error:  # the template is code of others: whatever it raises is its failure
            reason = f"The chat template of the model file cannot be used ({_short(error)})"
    warning = f"{reason}; a built-in format is used and answers may be worse."
    fallback = fallback_template(tokenizer, absent=source is None)
    found, marks = _probed(ChatTemplate(fallback.source, date, variables)), marks_of(tokenizer, fallback.source)
    return ChatFormat(*found, tokenizer, (warning,), marks, stops=fallback.stops)


def _behind_end(ids: list[int], ends: set[int]) -> list[int]:
    """`ids` behind the first end token, all of them where there is none."""
    position = next((i for i, token in enumerate(ids) if token in ends), -1)
    return ids[position + 1 :]


def _variables(tokenizer: Tokenizer) -> dict[str, object]:
    names = {"bos_token": tokenizer.bos, "eos_token": tokenizer.eos}
    return {name: "" if token is None else tokenizer.token_text(token) for name, token in names.items()}


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200]


def _probed(template: ChatTemplate) -> tuple[Segments, bool]:
    """Segments of the template, and whether it is append-only. Contents are strings, else lists of parts."""
    try:
        probe = _Probe(template, parts=False)
        segments = probe.segments()
    except Exception:  # whatever it raises for strings, it may still work for parts
        probe = _Probe(template, parts=True)
        segments = probe.segments()
    return segments, probe.agrees(segments)


class _Probe:
    """Renders conversations of sentinels and cuts them apart."""

    def __init__(self, template: ChatTemplate, parts: bool) -> None:
        self._template = template
        self._parts = parts

    def segments(self) -> Segments:
        first_alone, assistant_open = self._cut(None, _USERS[:1], ())
        next_user_open = self._cut(None, _USERS[:2], _ANSWERS[:1])[2]
        system = self._system()
        before, glue = system or (first_alone, _NO_ROLE_GLUE)
        return Segments(
            open=before,
            first_user_open=glue,
            first_user_open_alone=first_alone,
            assistant_open=assistant_open,
            next_user_open=next_user_open,
            system_role=system is not None,
            trims_system=system is not None and self._trims(_SYSTEM),
            trims_user=self._trims(_USERS[0]),
        )

    def agrees(self, segments: Segments) -> bool:
        """Whether the template renders one to three turns exactly as the segments do."""
        systems = (None, _SYSTEM) if segments.system_role else (None,)
        return all(
            self._render(system, _USERS[: n + 1], _ANSWERS[:n])
            == segments.compose(system, _USERS[: n + 1], _ANSWERS[:n])
            for system in systems
            for n in range(3)
        )

    def _system(self) -> tuple[str, str] | None:
        """Text before the system text and from there to the user text; None without a system role."""
        try:
            before, glue, _ = self._cut(_SYSTEM, _USERS[:1], ())
        except Exception:  # refused by the template, or left out
            return None
        return before, glue

    def _trims(self, sentinel: str) -> bool:
        """Whether white space around this content is lost."""
        padded = f" \n{sentinel}\n "
        system = padded if sentinel == _SYSTEM else None
        user = padded if sentinel == _USERS[0] else _USERS[0]
        return padded not in self._render(system, (user,), ())

    def _cut(self, system: str | None, users: Sequence[str], answers: Sequence[str]) -> list[str]:
        """The texts before, between and after the contents, each of which must appear once and in order."""
        rest, parts = self._render(system, users, answers), []
        for content in _interleaved(system, users, answers):
            if rest.count(content) != 1:
                raise _ProbeError("it does not show every message once")
            before, rest = rest.split(content)
            parts.append(before)
        return [*parts, rest]

    def _render(self, system: str | None, users: Sequence[str], answers: Sequence[str]) -> str:
        roles = ["system"] if system is not None else []
        roles += ["user" if i % 2 == 0 else "assistant" for i in range(len(users) + len(answers))]
        contents = _interleaved(system, users, answers)
        messages: list[Message] = [
            {"role": role, "content": [{"type": "text", "text": text}] if self._parts else text}
            for role, text in zip(roles, contents, strict=True)
        ]
        return self._template.render(messages)


def _interleaved(system: str | None, users: Sequence[str], answers: Sequence[str]) -> list[str]:
    contents = [] if system is None else [system]
    for i, user in enumerate(users):
        contents += [user, *answers[i : i + 1]]
    return contents
