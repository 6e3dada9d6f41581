"""What a model takes besides its file and its KV: python tests/bench/memory.py MODEL.gguf [--tokens 512 2048 4096].

A process of its own for each number of prompt tokens, which answers through the engine's client without a store. Its
peak resident size, less what of the model's file is resident in the end, and less the KV that is held then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANSWER = 16

CHILD = r"""
import json, re, sys
from pathlib import Path

def status(name):
    return int(re.search(name + r":\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024

def mapped(path):
    own, rss = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            own = line.endswith(path)
        elif own and line.startswith("Rss:"):
            rss += int(line.split()[1])
    return rss / 1024

path, threads, tokens, kv = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
started = status("VmRSS")
from engine.bench_driver import BenchEngine
from engine.messages import EngineSettings, Tokens
imported = status("VmRSS")
settings = EngineSettings(threads=threads, context=tokens + 64, kv_type_k=kv, kv_type_v=kv)
with BenchEngine(Path(path), settings, None) as engine:
    loaded = status("VmHWM") - mapped(path)
    vocabulary = engine.client.model.spec.vocabulary
    prompt = Tokens.prompt([(7919 * (i + 1)) % vocabulary for i in range(tokens)])
    engine.ask("c", prompt, ANSWER)
    stats = engine.idle_stats()
    peak, file = status("VmHWM"), mapped(path)
print(json.dumps({"started": started, "imported": imported, "loaded": loaded, "peak": peak, "file": file,
                  "kv": stats.kv_memory_bytes / 2**20, "kv reserved": stats.kv_reserved_bytes / 2**20}))
"""


def measured(model: Path, threads: int, tokens: int, kv: str) -> dict[str, float]:
    """Megabytes (2^20 bytes): of the process at its start, after imports and loading, at its peak; of file and KV."""
    arguments = [str(model.resolve()), str(threads), str(tokens), kv]
    done = subprocess.run(
        [sys.executable, "-c", CHILD.replace("ANSWER", str(ANSWER)), *arguments],
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048, 4096])
    parser.add_argument("--kv", default="f16")
    options = parser.parse_args()
    for tokens in options.tokens:
        found = measured(options.model, options.threads, tokens, options.kv)
        rest = found["peak"] - found["file"] - found["kv"]
        print(f"{tokens:,} tokens: {rest:.0f} MB; " + ", ".join(f"{name} {size:.0f}" for name, size in found.items()))


if __name__ == "__main__":
    main()
