"""A process that talks to a store: `python -m tests.engine.store.worker FOLDER SEED ROUNDS`.

Grows a few conversations over one document, saves after each turn, and prints `saved NAME TOKENS` once a flush has
returned. Its token lists follow from the seed, so that whoever opens the store later knows what must be there.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from engine.messages import Tokens
from tests.engine.kv.small import PAGE
from tests.engine.store.opened import Opened, tokens_of

DOCUMENT = tokens_of(range(10 * PAGE + 3))


def script(seed: int, rounds: int) -> list[tuple[str, Tokens]]:
    """(conversation, its whole token list) turn by turn."""
    chance = random.Random(seed)
    histories = {f"{seed}-{name}": DOCUMENT for name in "abc"}
    turns = []
    for _ in range(rounds):
        name = chance.choice(sorted(histories))
        histories[name] += tokens_of(chance.randrange(1000) for _ in range(chance.randint(1, 3 * PAGE)))
        turns.append((name, histories[name]))
    return turns


def main() -> None:
    folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with Opened(folder) as opened:
        print("ready", flush=True)
        for name, tokens in script(seed, rounds):
            opened.converse(name, tokens).release()
            print("saved", name, len(tokens), flush=True)


if __name__ == "__main__":
    main()
