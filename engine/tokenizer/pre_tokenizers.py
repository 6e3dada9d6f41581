"""Pre-tokenizers by the file's `tokenizer.ggml.pre`: regular expressions that cut text before byte-level BPE.

The expressions are those of the models' published tokenizer.json files, in Oniguruma syntax. Each pass cuts
the pieces that the pass before left; text between matches is a piece of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PreTokenizer:
    """`ignore_merges`: a piece that is itself a token is taken whole. `add_bos`: where the file is silent."""

    passes: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False


_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_HAN = "[一-龥\u0800-一가-\ud7ff]+"
_CJK = "[一-龥぀-ゟ゠-ヿ]+"
_ASCII_PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_SYMBOLS}|{_SPACES}"
_QWEN35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_DEEPSEEK3 = (
    rf"{_ASCII_PUNCTUATION}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
# Letters with case but for Georgian; the published expression spells this set out as ranges.
_CASED = "[\\p{Lu}\\p{Ll}\\p{Lt}&&[^\u10d0-\u10ff]]"


def _cased_words(upper: str, lower: str, contraction: str, digits: str, trailing: str) -> str:
    """Words that begin a new piece where lower case turns to upper (o200k, Tekken, Kimi)."""
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{lead}{upper}*{lower}+{contraction}|{lead}{upper}+{lower}*{contraction}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+{trailing}|{_SPACES}"
    )


_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_NOT_HAN = r"&&[^\p{Han}]"
_O200K = _cased_words(_UPPER, _LOWER, f"{_CONTRACTION}?", r"\p{N}{1,3}", r"[\r\n/]*")
_TEKKEN = _cased_words(_UPPER, _LOWER, "", r"\p{N}", r"[\r\n/]*")
_KIMI = r"\p{Han}+|" + _cased_words(
    rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}]",
    rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{_NOT_HAN}]",
    f"{_CONTRACTION}?",
    r"\p{N}{1,3}",
    r"[\r\n]*",
)

DEFAULT = PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))

_GROUPS: tuple[tuple[str, PreTokenizer], ...] = (
    ("default", DEFAULT),
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2",
        PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True),
    ),
    ("dbrx smaug-bpe", PreTokenizer((_LLAMA3,))),
    ("glm4 chatglm-bpe", PreTokenizer((_LLAMA3,), ignore_merges=True)),
    ("qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan solar-open grok-2", PreTokenizer((_QWEN2,))),
    ("qwen35", PreTokenizer((_QWEN35,))),
    ("gpt-2 olmo mpt phi-2 jais exaone4 trillion granite-docling mellum gigachat", PreTokenizer((_GPT2,))),
    (
        "starcoder refact smollm command-r codeshell exaone minerva-7b mellum2",
        PreTokenizer((r"\p{N}", _GPT2)),
    ),
    ("falcon", PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]"))),
    ("deepseek-v3 hunyuan-dense joyai-llm", PreTokenizer((r"\p{N}{1,3}", _CJK, _DEEPSEEK3))),
    (
        "deepseek-llm",
        PreTokenizer((r"[\r\n]", rf"\s?{_CASED}+", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", _HAN, r"\p{N}+")),
    ),
    ("deepseek-coder", PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN, r"\p{N}"))),
    ("gpt-4o llama4 kanana2", PreTokenizer((_O200K,))),
    ("tekken", PreTokenizer((_TEKKEN,), ignore_merges=True, add_bos=True)),
    ("kimi-k2", PreTokenizer((_KIMI,))),
)

PRE_TOKENIZERS = MappingProxyType({name: entry for names, entry in _GROUPS for name in names.split()})
