"""The pre-tokenizers' cuts: by hand for what tells them apart, and against another regular-expression engine."""

from __future__ import annotations

import pytest
import regex
from tokenizers import Regex, pre_tokenizers

from engine.tokenizer.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer

TEXTS = [
    "Hello, world! It's 2024's DON'T we'LL",
    "  two  spaces\n\n\nlines\r\n\ttab  end  ",
    "0 12 345 6789 12345678901 3.14159 1e-9 1,000,000",
    "helloWorld HTTPServer ÜBERgröße naïveCafé e\u0301a",
    "東京は日本の首都です。北京abc漢字def 한국어와 हिन्दी العربية",
    "if (a != b && c >= 10) { s[i++] = \"\\n\"; } // x/y\n",
    "🙂👍🏽 ❤️ ½ ² Ⅷ ٣ \u00a0nbsp\u3000ideographic \ufeff\u200b",
    "'s 'S s' ''t $x^2 + \\frac{a}{b}$ <|im_end|>",
]  # fmt: skip


def pieces(entry: PreTokenizer, text: str) -> list[str]:
    cuts = [text]
    for expression in entry.passes:
        splitter = pre_tokenizers.Split(Regex(expression), "isolated")
        cuts = [piece for cut in cuts for piece, _ in splitter.pre_tokenize_str(cut)]
    return cuts


def other_engine(entry: PreTokenizer, text: str) -> list[str]:
    """The same passes by the `regex` module: matches and what lies between them."""
    cuts = [text]
    for expression in entry.passes:
        pattern = regex.compile(expression, regex.V1)
        cuts = [piece for cut in cuts for piece in _isolated(pattern, cut)]
    return cuts


def _isolated(pattern: regex.Pattern[str], text: str) -> list[str]:
    found, position = [], 0
    for match in pattern.finditer(text):
        if match.start() > position:
            found.append(text[position : match.start()])
        if match.group():
            found.append(match.group())
        position = match.end()
    return [*found, text[position:]] if position < len(text) else found


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_two_engines_agree_and_lose_nothing(name: str) -> None:
    for text in TEXTS:
        ours = pieces(PRE_TOKENIZERS[name], text)
        assert "".join(ours) == text
        assert ours == other_engine(PRE_TOKENIZERS[name], text)


CUTS = [
    ("gpt-2", "a1234 b", ["a", "1234", " b"]),
    ("smollm", "a1234 b", ["a", "1", "2", "3", "4", " b"]),
    ("llama-bpe", "x12345", ["x", "123", "45"]),
    ("llama-bpe", "I'LL (go)", ["I", "'LL", " (", "go", ")"]),
    ("gpt-2", "I'LL", ["I", "'", "LL"]),
    ("qwen2", "x12 \n y", ["x", "1", "2", " \n", " y"]),
    ("qwen2", "हिन्दी", ["ह", "िन", "्द", "ी"]),
    ("qwen35", "हिन्दी", ["हिन्दी"]),
    ("gpt-4o", "helloWorld's", ["hello", "World's"]),
    ("tekken", "helloWorld's 12", ["hello", "World", "'s", " ", "1", "2"]),
    ("kimi-k2", "abc東京def", ["abc", "東京", "def"]),
    ("deepseek-v3", "x12345東京ab", ["x", "123", "45", "東京", "ab"]),
    ("deepseek-v3", "(foo) !", ["(foo", ")", " !"]),
    ("deepseek-llm", "ab 東京12", ["ab", " ", "東京", "12"]),
    ("deepseek-coder", "a,b12\n", ["a", ",", "b", "1", "2", "\n"]),
    ("default", "a$b12345", ["a", "$", "b", "123", "45"]),
]


@pytest.mark.parametrize(("name", "text", "expected"), CUTS)
def test_cuts_by_hand(name: str, text: str, expected: list[str]) -> None:
    assert pieces(PRE_TOKENIZERS[name], text) == expected
