"""What the layout of pages costs: attention, saving and restoring by page size and by the order of the planes.

    python tests/bench/layout.py [--tokens 8000] [--threads 2] [--sizes 64 128 256 512] [--repeat 5]

Everything is the product's own code with other parameters: the attention kernels with the orders that block tables and
offsets can say, the store with pages of another size. The shape is SmolLM2-135M's in f16 (see store.py). Orders:
"page": a page holds all layers, each K then V (layout id 1); "page, K apart": all K of a page, then all V; "layer": a
layer's K and V of all pages lie together. The store writes a page as one record, so its columns belong to "page".
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

import store  # noqa: E402
from attention import best, rows_batch  # noqa: E402

from engine.kv.layout import PAGE_SIZES, PageLayout  # noqa: E402
from engine.messages import Tokens  # noqa: E402
from kernels.program import Attention, KvLayerLayout, Program  # noqa: E402

ROWS = 32  # of a slice of prefill
KERNEL_PAGE = 64  # the kernels want multiples of it


@dataclass(frozen=True)
class Order:
    """Where layer `i` and page `p` lie: `layers` by offsets, pages every `stride` bytes."""

    name: str
    layers: tuple[KvLayerLayout, ...]
    stride: int
    total: int


def orders(layout: PageLayout, pages: int) -> Iterator[Order]:
    size, layers = layout.payload_bytes, layout.layers
    yield Order("page", layers, size, pages * size)
    half = layers[0].v_offset - layers[0].k_offset
    apart = (replace(x, k_offset=i * half, v_offset=size // 2 + i * half) for i, x in enumerate(layers))
    yield Order("page, K apart", tuple(apart), size, pages * size)
    one = layout.layer_bytes(0)
    together = (replace(x, k_offset=i * pages * one, v_offset=i * pages * one + half) for i, x in enumerate(layers))
    yield Order("layer", tuple(together), one, pages * size)


def attend(order: Order, page_tokens: int, tokens: int, threads: int, repeat: int) -> tuple[float, float]:
    """Milliseconds of all layers' attention for one token, and for one of ROWS prompt tokens."""
    attention = store.smollm2().layers[0].attention
    heads, dim = attention.heads, attention.head_dim_k
    raw = np.zeros(order.total + 64, np.uint8)
    raw[:] = 0x2A  # finite values in f16
    start = -(-raw.ctypes.data // 64) * 64
    count = -(-(tokens + ROWS) // page_tokens)
    pages = (start + np.arange(count, dtype=np.uint64) * np.uint64(order.stride)).reshape(1, -1)
    ops = tuple(Attention(1, 0, i, heads, dim**-0.5) for i in range(len(order.layers)))
    program = Program((heads * dim, heads * dim), (), order.layers, page_tokens, (), ops, 1, heads * dim)
    q = np.random.default_rng(1).standard_normal((ROWS, heads * dim)).astype(np.float32)
    one = best(program, rows_batch(1, tokens, pages), q[:1], threads, repeat, None, store.time.perf_counter)
    many = best(
        program, rows_batch(ROWS, tokens, pages), q, threads, max(1, repeat // 2), None, store.time.perf_counter
    )
    return one * 1e3, many * 1e3 / ROWS


def kept(layout: PageLayout, tokens: int, repeat: int, folder: Path | None) -> dict[str, float]:
    """What saving and restoring that many tokens costs; the best of several restores from the file cache."""
    text = Tokens.prompt(np.random.default_rng(3).integers(0, 49152, tokens).tolist())
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store.save(Path(place), layout, text)
        for _ in range(repeat):
            store.restore(Path(place), layout, text, "restore")
            found.append(dict(store.FIGURES))
    least = {name: min(run[name] for run in found) for name in ("restore_ms", "restore_match_disk_ms")}
    return least | {name: store.FIGURES[name] for name in ("save_visible_ms", "save_durable_ms")}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tokens", type=int, default=8000)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128, 256, 512])
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--folder", type=Path)
    chosen = options.parse_args()
    product = PageLayout.for_spec(store.smollm2())
    print("page | order | decode ms | prefill ms a token | save blocks ms | durable ms | match ms | restore ms")
    for size in chosen.sizes:
        layout = product.sized(size)
        disk = kept(layout, chosen.tokens, chosen.repeat, chosen.folder)
        columns = (disk["save_visible_ms"], disk["save_durable_ms"], disk["restore_match_disk_ms"], disk["restore_ms"])
        last = " | ".join(f"{value:.1f}" for value in columns)
        if size % KERNEL_PAGE:
            print(f"{size} | page | - | - | {last}")
            continue
        pages = -(-(chosen.tokens + ROWS) // size)
        for order in orders(layout, pages):
            one, many = attend(order, size, chosen.tokens, chosen.threads, chosen.repeat)
            mark = " (the product)" if (size, order.name) == (product.page_tokens, "page") else ""
            print(
                f"{size} | {order.name}{mark} | {one:.2f} | {many:.2f} | {last if order.name == 'page' else ''}",
                flush=True,
            )
    print(f"the product takes the smallest of {PAGE_SIZES} for which K and V of every layer fill 64 KB: here "
          f"{product.page_tokens} tokens, {product.layer_bytes(0) >> 10} KB")  # fmt: skip


if __name__ == "__main__":
    main()
