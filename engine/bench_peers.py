"""A run of another engine, as a program of its own: its environment has none of Pagekeep's packages.

    PEER_PYTHON -c SOURCE '{"peer": NAME, "path": FILE, "threads": N, ...}'

Prints one JSON object. Read as text and handed to the peer's interpreter by `bench_compare` and `bench_parallel`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import time
from typing import Any

GGML_TYPES = {"f32": 0, "f16": 1, "q8": 8, "bf16": 30}
WARM = 64  # tokens of the first run, which is not measured


def ids(count: int, vocabulary: int) -> list[int]:
    """The same pseudo-random tokens as Pagekeep's runs use."""
    return [(7919 * (index + 1)) % vocabulary for index in range(count)]


def llama_cpp(job: dict[str, Any]) -> tuple[float, float]:
    """llama-cpp-python, its own `eval`. Tokens per second of prompt and generation."""
    module = importlib.import_module("llama_cpp")
    depth, prompt, generate = job["depth"], job["prompt"], job["generate"]
    model = module.Llama(
        job["path"], n_ctx=max(WARM, depth + prompt + generate) + 8, n_batch=job["batch"], n_ubatch=job["batch"],
        n_threads=job["threads"], n_threads_batch=job["threads"], type_k=GGML_TYPES[job["kv"]],
        type_v=GGML_TYPES[job["kv_v"]], verbose=False, flash_attn=True,
    )  # fmt: skip
    model.eval(ids(WARM, model.n_vocab()))
    model.reset()
    return timed(model.eval, ids(depth + prompt + generate, model.n_vocab()), job)


def ik_llama(job: dict[str, Any]) -> tuple[float, float]:
    """ik-llama-cpp-python, through its C functions: the wrapper's own context takes neither batch nor KV type."""
    load_libraries("ik_llama_cpp")
    c = importlib.import_module("ik_llama_cpp._ctypes_api")
    c.llama_backend_init()
    model = c.llama_model_load_from_file(job["path"].encode(), c.llama_model_default_params())
    params = c.llama_context_default_params()
    params.n_ctx = max(WARM, job["depth"] + job["prompt"] + job["generate"]) + 8
    params.n_batch = params.n_ubatch = job["batch"]
    params.n_threads = params.n_threads_batch = job["threads"]
    params.type_k, params.type_v = GGML_TYPES[job["kv"]], GGML_TYPES[job["kv_v"]]
    params.flash_attn = True
    context = c.llama_init_from_model(model, params)
    vocabulary = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    fed = 0

    def feed(tokens: list[int]) -> None:
        nonlocal fed
        for start in range(0, len(tokens), job["batch"]):
            piece = tokens[start : start + job["batch"]]
            if c.llama_decode(context, filled_batch(c, piece, fed)):
                raise RuntimeError("llama_decode failed")
            fed += len(piece)

    feed(ids(WARM, vocabulary))
    c.llama_kv_cache_clear(context)
    fed = 0
    return timed(feed, ids(job["depth"] + job["prompt"] + job["generate"], vocabulary), job)


def filled_batch(c: Any, tokens: list[int], start: int) -> Any:
    """Sequence 0, logits of the last token."""
    batch = c.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for place, token in enumerate(tokens):
        put(batch, place, token, start + place, 0, place == len(tokens) - 1)
    return batch


def put(batch: Any, place: int, token: int, position: int, sequence: int, wanted: bool) -> None:
    batch.token[place], batch.pos[place], batch.logits[place] = token, position, int(wanted)
    batch.n_seq_id[place] = 1
    batch.seq_id[place][0] = sequence


def timed(feed: Any, tokens: list[int], job: dict[str, Any]) -> tuple[float, float]:
    depth, prompt, generate = job["depth"], job["prompt"], job["generate"]
    if depth:
        feed(tokens[:depth])
    begun = time.perf_counter()
    feed(tokens[depth : depth + prompt])
    read = time.perf_counter()
    for token in tokens[depth + prompt :]:
        feed([token])
    return prompt / (read - begun), generate / (time.perf_counter() - read)


def xllamacpp(job: dict[str, Any]) -> tuple[float, float]:
    """The server's own timings. What is at the depth is read first and then found in its prompt cache."""
    module = importlib.import_module("xllamacpp")
    depth, prompt, generate = job["depth"], job["prompt"], job["generate"]
    params = module.CommonParams()
    params.model.path = job["path"]
    params.n_ctx, params.n_parallel, params.warmup = depth + prompt + generate + 8 + WARM, 1, False
    params.n_batch = params.n_ubatch = job["batch"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = job["threads"]
    kinds = module.ggml_type
    names = {"f32": "GGML_TYPE_F32", "f16": "GGML_TYPE_F16", "q8": "GGML_TYPE_Q8_0", "bf16": "GGML_TYPE_BF16"}
    params.cache_type_k, params.cache_type_v = (getattr(kinds, names[job[name]]) for name in ("kv", "kv_v"))
    server = module.Server(params)

    def ask(tokens: list[int], answer: int) -> dict[str, Any]:
        wanted = {"prompt": tokens, "n_predict": answer, "ignore_eos": True, "cache_prompt": True, "temperature": 0}
        timings: dict[str, Any] = server.handle_completions(wanted)["timings"]
        return timings

    tokens = ids(depth + prompt, 5000)
    ask([token + 1 for token in tokens[:WARM]], 1)
    if depth:
        ask(tokens[:depth], 1)
    timings = ask(tokens, generate)
    return float(timings["prompt_per_second"]), float(timings["predicted_per_second"])


def parallel(job: dict[str, Any]) -> list[dict[str, float]]:
    """llama-cpp-python's library: conversations on one prefix that is read once, decoded in common batches."""
    c = importlib.import_module("llama_cpp")
    most, prefix, question, answer = max(job["counts"]), job["prefix"], job["question"], job["answer"]
    model = c.llama_model_load_from_file(job["path"].encode(), c.llama_model_default_params())
    params = c.llama_context_default_params()
    params.n_ctx = prefix + most * (question + answer + 8)
    params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = job["threads"]
    params.n_seq_max, params.kv_unified, params.flash_attn_type = most, True, 1
    context = c.llama_init_from_model(model, params)
    memory = c.llama_get_memory(context)
    tokens = ids(prefix + question, c.llama_vocab_n_tokens(c.llama_model_get_vocab(model)))

    def feed(rows: list[tuple[int, int, int, bool]]) -> None:
        for start in range(0, len(rows), 512):
            piece = rows[start : start + 512]
            batch = c.llama_batch_init(len(piece), 0, 1)
            batch.n_tokens = len(piece)
            for place, row in enumerate(piece):
                put(batch, place, *row)
            if c.llama_decode(context, batch):
                raise RuntimeError("llama_decode failed")
            c.llama_batch_free(batch)

    begun = time.perf_counter()
    feed([(tokens[place], place, 0, place == prefix - 1) for place in range(prefix)])
    read = time.perf_counter() - begun
    found = []
    for count in job["counts"]:
        for sequence in range(1, count):
            c.llama_memory_seq_cp(memory, 0, sequence, 0, prefix)
        asked = [(tokens[prefix + i], prefix + i, s, i == question - 1) for s in range(count) for i in range(question)]
        begun = time.perf_counter()
        feed(asked)
        first = time.perf_counter()
        for step in range(answer):
            feed([(tokens[step + s], prefix + question + step, s, True) for s in range(count)])
        seconds = time.perf_counter() - first
        together = count * answer / seconds
        found.append({"conversations": count, "first_token_ms": (first - begun) * 1e3, "together": together})
        for sequence in range(count):
            c.llama_memory_seq_rm(memory, sequence, prefix if sequence == 0 else 0, -1)
    return [{"prefix_ms": read * 1e3, **row} for row in found]


RUNS = {"llama-cpp-python": llama_cpp, "ik-llama-cpp-python": ik_llama, "xllamacpp": xllamacpp}
MODULES = {"llama-cpp-python": "llama_cpp", "ik-llama-cpp-python": "ik_llama_cpp", "xllamacpp": "xllamacpp"}


def load_libraries(package: str) -> None:
    """A native build's libraries name each other without a path: opened in order they are found."""
    found = importlib.util.find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        for name in ("libggml.so", "libllama.so"):
            with contextlib.suppress(OSError):  # another platform's names, which the package itself finds
                ctypes.CDLL(f"{folder}/lib/{name}", mode=ctypes.RTLD_GLOBAL)


def build(peer: str) -> str:
    """Version, and what the library says it was compiled for."""
    version = f"{peer} {importlib.metadata.version(peer)}"
    try:
        if peer == "xllamacpp":
            said = importlib.import_module("xllamacpp").llama_print_system_info
        elif peer == "ik-llama-cpp-python":
            said = importlib.import_module("ik_llama_cpp._ctypes_api")._lib.llama_print_system_info
            said.restype = ctypes.c_char_p
        else:
            said = importlib.import_module("llama_cpp").llama_print_system_info
        text = said()
        return f"{version}: {text.decode() if isinstance(text, bytes) else text}".strip()
    except (ImportError, AttributeError):
        return f"{version}: does not say what it was compiled for"


def main() -> None:
    job = json.loads(sys.argv[1])
    if job.get("counts"):
        result: dict[str, Any] = {"rows": parallel(job)}
    else:
        prefill, decode = RUNS[job["peer"]](job)
        result = {"prefill": prefill, "decode": decode}
    print("\n" + json.dumps({**result, "build": build(job["peer"])}))


if __name__ == "__main__":
    main()
