"""Instructions as the rows of integers and reals that the native module reads, each checked against its program."""

from __future__ import annotations

from typing import Any

from kernels import program as p

ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2}
GATINGS = {"softmax": 0, "sigmoid": 1, "softmax_chosen": 2, "sqrt_softplus": 3}

_KINDS: dict[type, int] = {
    p.Embed: 0,
    p.RmsNorm: 1,
    p.HeadNorm: 2,
    p.Linear: 3,
    p.Rope: 4,
    p.KvWrite: 5,
    p.Attention: 6,
    p.Gated: 7,
    p.Head: 8,
    p.Add: 13,
    p.SigmoidGate: 14,
    p.Route: 16,
    p.Experts: 17,
    p.MlaAttention: 18,
}
_MORE = 9  # columns behind the named ones; their order is that of the encoder
OP_COLUMNS = 9 + _MORE
MAX_EXPERTS = 1024


class _Checker:
    """Bounds and widths of one instruction."""

    def __init__(self, program: p.Program, index: int, op: object) -> None:
        self.program = program
        self.name = f"instruction {index} ({type(op).__name__})"

    def fail(self, text: str) -> None:
        raise ValueError(f"{self.name}: {text}")

    def buffer(self, index: int, width: int | None = None) -> int:
        if not 0 <= index < len(self.program.widths):
            self.fail(f"buffer {index} does not exist")
        if width is not None and self.program.widths[index] != width:
            self.fail(f"buffer {index} is {self.program.widths[index]} wide, not {width}")
        return index

    def width(self, index: int) -> int:
        return self.program.widths[self.buffer(index)]

    def tensor(self, index: int, cols: int | None = None) -> p.TensorRef:
        if not 0 <= index < len(self.program.tensors):
            self.fail(f"tensor {index} does not exist")
        tensor = self.program.tensors[index]
        if cols is not None and tensor.cols != cols:
            self.fail(f"tensor {index} has {tensor.cols} columns, not {cols}")
        return tensor

    def vector(self, index: int, count: int) -> int:
        tensor = self.tensor(index)
        if tensor.ggml_type != 0 or tensor.rows * tensor.cols != count:
            self.fail(f"tensor {index} must hold {count} F32 values")
        return index

    def layer(self, index: int) -> p.KvLayerLayout:
        if not 0 <= index < len(self.program.kv_layers):
            self.fail(f"KV layer {index} does not exist")
        return self.program.kv_layers[index]


def _row(
    kind: type, reals: tuple[float, float, float] = (0.0, 1.0, 0.0), more: tuple[int, ...] = (), /, **columns: int
) -> Any:
    names = ("out", "src", "weight", "extra", "index")
    ints = [_KINDS[kind], *(columns.get(n, -1) for n in names)]
    ints += [columns.get(n, 0) for n in ("heads", "head_dim", "flag")]
    return [*ints, *more, *[0] * (_MORE - len(more))], list(reals)


def encode_op(program: p.Program, index: int, op: p.Instruction) -> tuple[list[int], list[float]]:
    """(OP_COLUMNS ints, 3 reals). ValueError names the instruction and what is wrong with it."""
    if type(op) not in _ENCODERS:
        raise ValueError(f"instruction {index} ({type(op).__name__}) has no native kernel")
    row: tuple[list[int], list[float]] = _ENCODERS[type(op)](_Checker(program, index, op), op)
    return row


def _embed(c: _Checker, op: p.Embed) -> Any:
    tensor = c.tensor(op.weight)
    c.buffer(op.out, tensor.cols)
    return _row(p.Embed, (0.0, op.scale, 0.0), out=op.out, weight=op.weight)


def _rms_norm(c: _Checker, op: p.RmsNorm) -> Any:
    c.vector(op.weight, c.width(op.src))
    c.buffer(op.out, c.width(op.src))
    return _row(p.RmsNorm, (op.eps, 1.0, 0.0), out=op.out, src=op.src, weight=op.weight)


def _head_norm(c: _Checker, op: p.HeadNorm) -> Any:
    c.buffer(op.buf, op.heads * op.head_dim)
    normed = op.dims or op.head_dim
    if not 0 < normed <= op.head_dim:
        c.fail(f"{normed} of {op.head_dim} channels")
    c.vector(op.weight, normed)
    sizes = {"heads": op.heads, "head_dim": op.head_dim, "flag": normed}
    return _row(p.HeadNorm, (op.eps, 1.0, 0.0), out=op.buf, weight=op.weight, **sizes)


def _linear(c: _Checker, op: p.Linear) -> Any:
    weight = c.tensor(op.weight, c.width(op.src))
    c.buffer(op.out, weight.rows)
    if op.out == op.src:
        c.fail("output and source are the same buffer")
    bias = -1 if op.bias is None else c.vector(op.bias, weight.rows)
    columns = {"out": op.out, "src": op.src, "weight": op.weight, "extra": bias, "flag": int(op.accumulate)}
    return _row(p.Linear, (0.0, op.scale, 0.0), **columns)


def _rope(c: _Checker, op: p.Rope) -> Any:
    c.buffer(op.buf, op.heads * op.head_dim)
    if not 0 <= op.rope < len(c.program.ropes):
        c.fail(f"rope table {op.rope} does not exist")
    if op.first < 0 or op.first + c.program.ropes[op.rope].dims > op.head_dim:
        c.fail(f"rope table {op.rope} from channel {op.first} on is wider than {op.head_dim}")
    return _row(p.Rope, out=op.buf, index=op.rope, heads=op.heads, head_dim=op.head_dim, flag=op.first)


def _add(c: _Checker, op: p.Add) -> Any:
    c.buffer(op.src, c.width(op.out))
    return _row(p.Add, (0.0, op.scale, 0.0), out=op.out, src=op.src)


def _sigmoid_gate(c: _Checker, op: p.SigmoidGate) -> Any:
    c.vector(op.weight, c.width(op.src))
    c.buffer(op.buf)
    return _row(p.SigmoidGate, out=op.buf, src=op.src, weight=op.weight)


def _kv_write(c: _Checker, op: p.KvWrite) -> Any:
    layer = c.layer(op.layer)
    c.buffer(op.k, layer.kv_heads * layer.head_dim_k)
    if layer.head_dim_v or op.v != -1:
        c.buffer(op.v, layer.kv_heads * layer.head_dim_v)
    return _row(p.KvWrite, src=op.k, extra=op.v, index=op.layer)


def _attention(c: _Checker, op: p.Attention) -> Any:
    layer = c.layer(op.layer)
    if not layer.head_dim_v:
        c.fail(f"KV layer {op.layer} stores no V")
    if op.heads % layer.kv_heads:
        c.fail(f"{op.heads} heads do not divide into {layer.kv_heads} KV heads")
    c.buffer(op.q, op.heads * layer.head_dim_k)
    c.buffer(op.out, op.heads * layer.head_dim_v)
    sinks = -1 if op.sinks is None else c.vector(op.sinks, op.heads)
    columns = {"out": op.out, "src": op.q, "extra": sinks, "index": op.layer}
    return _row(p.Attention, (0.0, op.scale, op.softcap), **columns, heads=op.heads, flag=op.window)


def _mla_attention(c: _Checker, op: p.MlaAttention) -> Any:
    layer = c.layer(op.layer)
    rope = layer.head_dim_k - op.kv_lora
    if layer.kv_heads != 1 or layer.head_dim_v or rope < 0 or min(op.kv_lora, op.nope, op.value_dim) <= 0:
        c.fail(f"KV layer {op.layer} does not hold latent rows of {op.kv_lora} channels and a rotated key")
    if layer.type_k == "q4":
        c.fail("latent rows cannot be stored as q4")
    if layer.type_k == "q8" and op.kv_lora % 32:
        c.fail(f"{op.kv_lora} latent channels cannot be stored as q8")
    c.buffer(op.q, op.heads * (op.nope + rope))
    c.buffer(op.out, op.heads * op.value_dim)
    if op.out == op.q:
        c.fail("output and query are the same buffer")
    shape_k = (op.kv_lora, op.nope) if op.k_transposed else (op.nope, op.kv_lora)
    for head in range(op.heads):
        for index, (rows, cols) in ((op.k_b + head, shape_k), (op.v_b + head, (op.value_dim, op.kv_lora))):
            if c.tensor(index, cols).rows != rows:
                c.fail(f"tensor {index} has {c.tensor(index).rows} rows, not {rows}")
    columns = {"out": op.out, "src": op.q, "weight": op.k_b, "extra": op.v_b, "index": op.layer}
    columns |= {"heads": op.heads, "head_dim": op.kv_lora, "flag": int(op.k_transposed)}
    return _row(p.MlaAttention, (0.0, op.scale, 0.0), (op.nope, rope, op.value_dim), **columns)


def _gated(c: _Checker, op: p.Gated) -> Any:
    width = c.width(op.out)
    c.buffer(op.gate, width)
    c.buffer(op.up, width)
    return _row(p.Gated, out=op.out, src=op.gate, extra=op.up, flag=ACTIVATIONS[op.activation])


def _route(c: _Checker, op: p.Route) -> Any:
    c.buffer(op.src, op.experts)
    c.buffer(op.out, 2 * op.used)
    if not 0 < op.used <= op.experts <= MAX_EXPERTS:
        c.fail(f"{op.used} of {op.experts} experts (at most {MAX_EXPERTS})")
    if op.groups < 1 or op.experts % op.groups or not 0 < op.groups_used <= op.groups:
        c.fail(f"{op.groups_used} of {op.groups} groups of {op.experts} experts")
    if op.groups > 1 and op.used > op.groups_used * (op.experts // op.groups):
        c.fail(f"{op.used} experts from {op.groups_used} of {op.groups} groups of {op.experts}")
    bias = -1 if op.bias is None else c.vector(op.bias, op.experts)
    more = (op.groups, op.groups_used, int(op.normalise))
    columns = {"out": op.out, "src": op.src, "extra": bias, "heads": op.experts, "head_dim": op.used}
    return _row(p.Route, (0.0, op.scale, 0.0), more, **columns, flag=GATINGS[op.gating])


def _experts(c: _Checker, op: p.Experts) -> Any:
    c.buffer(op.route, 2 * op.used)
    if not 0 < op.used <= op.experts <= MAX_EXPERTS:
        c.fail(f"{op.used} of {op.experts} experts (at most {MAX_EXPERTS})")
    cols, channels, width = c.width(op.src), c.width(op.out), c.tensor(op.gate).rows
    for expert in range(op.experts):
        for first, rows, source in ((op.gate, width, cols), (op.up, width, cols), (op.down, channels, width)):
            if c.tensor(first + expert, source).rows != rows:
                c.fail(f"tensor {first + expert} has {c.tensor(first + expert).rows} rows, not {rows}")
    if op.out in (op.src, op.route):
        c.fail("output and source are the same buffer")
    sizes = ((op.gate_bias, width), (op.up_bias, width), (op.down_bias, channels))
    biases = tuple(-1 if bias is None else c.vector(bias, op.experts * rows) for bias, rows in sizes)
    factors = -1 if op.factors is None else c.vector(op.factors, 3 * op.experts)
    columns = {"out": op.out, "src": op.src, "weight": op.gate, "extra": op.up, "index": op.down}
    columns |= {"heads": op.experts, "head_dim": op.used, "flag": ACTIVATIONS[op.activation]}
    return _row(p.Experts, (0.0, op.scale, 0.0), (op.route, *biases, int(op.accumulate), factors), **columns)


def _head(c: _Checker, op: p.Head) -> Any:
    channels = c.program.channels
    c.buffer(op.src, channels)
    c.vector(op.norm_weight, channels)
    if c.tensor(op.weight, channels).rows != c.program.vocabulary:
        c.fail(f"the output weight has {c.tensor(op.weight).rows} rows, the vocabulary {c.program.vocabulary}")
    reals = (op.eps, op.scale, op.softcap)
    return _row(p.Head, reals, src=op.src, weight=op.norm_weight, extra=op.weight)


_ENCODERS: dict[type, Any] = {
    p.Embed: _embed,
    p.RmsNorm: _rms_norm,
    p.HeadNorm: _head_norm,
    p.Linear: _linear,
    p.Rope: _rope,
    p.KvWrite: _kv_write,
    p.Attention: _attention,
    p.Gated: _gated,
    p.Head: _head,
    p.Add: _add,
    p.SigmoidGate: _sigmoid_gate,
    p.Route: _route,
    p.Experts: _experts,
    p.MlaAttention: _mla_attention,
}
