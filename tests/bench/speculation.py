"""What drafting from earlier text gains: the same answers with and without it, alternately; texts must be equal.

    python tests/bench/speculation.py MODEL.gguf [--threads 2] [--rounds 3] [--answer 96]

The document is this repository's README; the model is asked to write a part of it again, and to say something about it.
Random weights copy nothing: there the figures tell what drafting costs where it does not help.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from engine.bench_driver import BenchEngine
from engine.messages import EngineSettings, Tokens, TurnFinished

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PART = README[README.index("## What it does") : README.index("## Command line")]
TASKS = {
    "copies": f"{PART}\n\nThe same text once more, word for word:\n\n## What it does\n",
    "writes": f"{PART}\n\nIn my own words, a friend of mine would say about it that",
}


def decode(engine: BenchEngine, name: str, prompt: Tokens, answer: int) -> TurnFinished:
    return engine.ask(name, prompt, answer).finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer", type=int, default=96)
    options = parser.parse_args()
    on, off = (EngineSettings(threads=options.threads, speculation=value) for value in (True, False))
    with BenchEngine(options.model, on, None) as drafting, BenchEngine(options.model, off, None) as plain:
        handle = plain.client.model
        assert handle is not None
        for name, text in TASKS.items():
            prompt = Tokens.prompt(handle.tokenizer.encode(text))
            times: tuple[list[float], list[float]] = ([], [])
            for number in range(options.rounds + 1):
                first = decode(drafting, name, prompt, options.answer)
                second = decode(plain, name, prompt, options.answer)
                assert first.generated == second.generated, "another answer with drafts"
                if number:
                    times[0].append(first.timings.decode)
                    times[1].append(second.timings.decode)
            ratios = [off_ms / on_ms for on_ms, off_ms in zip(*times, strict=True)]
            with_, without = (statistics.median(values) for values in times)
            print(
                f"{name}: {len(first.generated)} tokens behind {len(prompt):,}, drafted {first.drafted}, accepted "
                f"{first.accepted}; plain {without:.0f} ms, drafting {with_:.0f} ms, ratio min {min(ratios):.2f} "
                f"median {statistics.median(ratios):.2f} max {max(ratios):.2f}"
            )
        running = drafting.client._service.running
        assert running is not None
        costs = running.scheduler._speculation.costs
        print("step by rows, ms:", {rows: round(costs.of(rows), 1) for rows in (1, 2, 3, 5, 9, 17)})


if __name__ == "__main__":
    main()
