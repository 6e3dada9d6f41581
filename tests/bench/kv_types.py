"""How far a model's distributions move when K and V are kept in smaller types: KL divergence over one long text.

    python tests/bench/kv_types.py MODEL.gguf TEXT.txt [--tokens 8192] [--threads 1] [--types q8,q8 q8,q4 ...]

The text is read once per pair of types (K,V); judged are whole chunks of 256 positions, every second one of the
second half. Each pair is compared with f16 K and V, and with f32: f16 against f32 is the floor below which no
difference to f16 says anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from engine.messages import EngineSettings
from engine.offline import Floats, OfflineModel
from engine.perplexity import Divergence, divergence, losses_of

CHUNK = 256
PAIRS = ("bf16,bf16", "q8,q8", "q8,f16", "f16,q8", "q8,q4", "q4,q8", "f16,q4", "q4,f16", "q4,q4")
Judged = list[tuple[int, Floats]]  # first position and logits [CHUNK - 1, vocabulary]


def judged(options: argparse.Namespace, pair: str) -> tuple[list[int], Judged]:
    key, value = pair.split(",")
    settings = EngineSettings(
        context=options.tokens + 64, threads=options.threads, kv_type_k=key, kv_type_v=value, prefill_chunk=CHUNK
    )
    with OfflineModel(options.model, settings) as model:
        ids = model.model.handle.tokenizer.encode(options.text.read_text(encoding="utf-8"))[: options.tokens]
        chunks: Judged = []
        for start in range(0, len(ids), CHUNK):
            wanted = start >= options.tokens // 2 and start // CHUNK % 2 == 0
            logits = model.feed(ids[start : start + CHUNK], all_logits=wanted)
            if wanted:
                chunks.append((start, logits[:-1]))
    return ids, chunks


def perplexity(ids: list[int], chunks: Judged) -> float:
    losses = [losses_of(logits, ids[start + 1 : start + 1 + len(logits)]) for start, logits in chunks]
    return float(np.exp(np.mean(np.concatenate(losses))))


def apart(chunks: Judged, reference: Judged) -> Divergence:
    """Of all chunks together; they are equally long but for the last, so means are weighted by length."""
    found = [divergence(ours, theirs) for (_, ours), (_, theirs) in zip(chunks, reference, strict=True)]
    weights = [one.positions for one in found]
    mean, median, same = (
        float(np.average([getattr(one, name) for one in found], weights=weights))
        for name in ("mean", "median", "same_top")
    )
    return Divergence(mean, median, max(one.largest for one in found), same, sum(weights))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--types", nargs="+", default=PAIRS, metavar="K,V")
    options = parser.parse_args()
    references = {pair: judged(options, pair)[1] for pair in ("f16,f16", "f32,f32")}
    print("K,V        against   mean KL  largest  equal top-1  perplexity", flush=True)
    for pair in ("f16,f16", *options.types):
        ids, chunks = judged(options, pair)
        for name, reference in references.items():
            found = apart(chunks, reference)
            print(
                f"{pair:10s} {name:8s} {found.mean:8.5f} {found.largest:8.3f} {found.same_top:11.2%}  "
                f"{perplexity(ids, chunks):.4f}  ({found.positions} positions)",
                flush=True,
            )


if __name__ == "__main__":
    main()
