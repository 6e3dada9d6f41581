"""The commands about models and measurements: `pagekeep model`, `pagekeep bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli.arguments import COUNT, POSITIVE, add_engine_options, command, group
from app.cli.bench_model import add_model as add_bench_model
from app.cli.numbers import number, whole_number

if TYPE_CHECKING:
    from app.cli.arguments import Commands

PEERS = ("llama-cpp-python", "ik-llama-cpp-python", "xllamacpp")


def add_model(commands: Commands) -> None:
    actions = group(commands, "model", "Models")
    command(actions, "ls", "List the models")
    info = command(actions, "info", "What a model file says about itself")
    info.add_argument("file", nargs="?", metavar="FILE", help="default: the chosen model")
    fetch = command(actions, "fetch", "Get a model: 'starter', or owner/repo/file.gguf from the hub")
    fetch.add_argument("what", metavar="WHAT")
    _add_plan(actions)
    check = command(actions, "check", "Whether a model file is sound: structure, sampled weights, a short run")
    check.add_argument("file", metavar="FILE")
    add_engine_options(check)
    logits = command(actions, "logits", "Logits of a list of tokens, for comparisons")
    logits.add_argument("file", metavar="FILE")
    logits.add_argument("--tokens", required=True, metavar="TOKENS.json", help="a list of ids")
    logits.add_argument("--out", required=True, metavar="OUT.npz")
    logits.add_argument("--greedy", type=COUNT, default=0, metavar="N", help="also the N ids that follow")
    add_engine_options(logits)


def _add_plan(actions: Commands) -> None:
    plan = command(actions, "plan", "Weights, KV and compute memory per device, before anything is loaded")
    plan.add_argument("file", metavar="FILE")
    plan.add_argument("--vram", type=number(0), default=0.0, metavar="GB", help="the best plan for so much GPU memory")
    add_engine_options(plan)


def add_bench(commands: Commands) -> None:
    actions = group(commands, "bench", "Measure this machine and a model")
    sweep = command(actions, "sweep", "Prompt and answer rates over the depth of the context")
    sweep.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    sweep.add_argument("--generate", type=POSITIVE, default=32, metavar="N")
    add_bench_model(sweep)
    switch = command(actions, "switch", "What coming back to a conversation costs, from memory and from disk")
    switch.add_argument("--tokens", type=POSITIVE, default=4096, metavar="N", help="length of the conversation")
    switch.add_argument("--question-tokens", type=POSITIVE, default=16, metavar="N")
    add_bench_model(switch)
    _add_machine_benches(actions)
    perplexity = command(actions, "perplexity", "How well a model foresees a text; how far it is from a reference")
    perplexity.add_argument("file", metavar="FILE", help="a model file")
    perplexity.add_argument("text", metavar="TEXT", help="a text file (UTF-8)")
    perplexity.add_argument("--window", type=whole_number(8), default=512, metavar="N", help="tokens judged together")
    perplexity.add_argument(
        "--reference", metavar="LOGITS.npz", help="'tokens' and 'logits', as 'pagekeep model logits' writes them"
    )
    add_engine_options(perplexity)


def _add_machine_benches(actions: Commands) -> None:
    compare = command(actions, "compare", "This engine and another one, run alternately on the same file")
    add_bench_model(compare)
    compare.add_argument("--peer", required=True, choices=PEERS)
    compare.add_argument("--rounds", type=POSITIVE, default=7, metavar="N", help="pairs of runs (default 7)")
    compare.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    compare.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    compare.add_argument("--depth", type=COUNT, default=0, metavar="N", help="tokens in the context beforehand")
    roofline = command(actions, "roofline", "What this machine gives, and what share of it a model reaches")
    add_bench_model(roofline, "without it only the machine")
    roofline.add_argument("--prompt", type=POSITIVE, default=512, metavar="N")
    roofline.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    parallel = command(actions, "parallel", "Several conversations on one prefix")
    add_bench_model(parallel)
    parallel.add_argument("--counts", type=POSITIVE, nargs="+", default=[1, 2, 4, 8, 10], metavar="N")
    parallel.add_argument("--prefix", type=POSITIVE, default=2048, metavar="N", help="tokens that all have in common")
    parallel.add_argument("--question-tokens", type=POSITIVE, default=16, metavar="N")
    parallel.add_argument("--generate", type=POSITIVE, default=64, metavar="N")
    parallel.add_argument("--peer", choices=PEERS[:1], help="the same with another engine")
    for bench in (compare, parallel):
        bench.add_argument("--peer-python", metavar="PATH", help="interpreter of the environment that has the peer")
