"""What this machine gives: read bandwidth over a mapped file and the int8 matrix rate of torch.

python tests/bench/roofline.py [FILE] --threads 1 2. Without FILE a temporary one of 256 MB is written. Both are
the yardsticks for the kernels, so take them in the same minutes as the measurements they judge.
"""

from __future__ import annotations

import argparse
import mmap
import tempfile
import threading
import time
from pathlib import Path

import numpy as np


def stream(path: Path, threads: int, repeat: int = 7) -> float:
    """Best GB/s of reading every byte of the mapping once (after a first pass that fills the page cache)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        words = np.frombuffer(mapping, np.int64, len(mapping) // 8)
        shares = np.array_split(words, threads)
        rates = [_timed_pass(shares) for _ in range(repeat + 1)][1:]
        del words, shares
    return path.stat().st_size * 1e-9 / min(rates)


def _timed_pass(shares: list[np.ndarray]) -> float:
    workers = [threading.Thread(target=share.max) for share in shares]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def int8_rate(threads: int, repeat: int = 15) -> float:
    """Best Gop/s of torch._int_mm, [512, 2048] x [2048, 2048]."""
    import torch

    torch.set_num_threads(threads)
    a = torch.randint(-127, 127, (512, 2048), dtype=torch.int8)
    b = torch.randint(-127, 127, (2048, 2048), dtype=torch.int8)
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        torch._int_mm(a, b)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * 512 * 2048 * 2048 / best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "stream"
        if args.file is None:
            path.write_bytes(np.random.default_rng(0).bytes(256_000_000))
        for threads in args.threads:
            print(f"threads {threads}: read {stream(path, threads):.1f} GB/s, int8 {int8_rate(threads):.0f} Gop/s")


if __name__ == "__main__":
    main()
