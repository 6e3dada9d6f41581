"""The CPU backend: compiles the blocks of a stretch into one native program, run in one call per step."""

from __future__ import annotations

from dataclasses import replace

from engine.backends.emit_attention import emit_attention
from engine.backends.emit_ffn import emit_ffn, emit_routed
from engine.backends.emitter import STREAM, Emitter
from engine.errors import EngineError, UnsupportedModel
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.spec import ModelSpec
from engine.models.tensors import ModelTensors, bind
from engine.placement import Block, Stretch
from kernels.encoding import GGML_BLOCKS
from kernels.native_program import NativeProgram
from kernels.program import Embed, Head, Program


def native_backend(
    gguf: GgufFile, spec: ModelSpec, layout: PageLayout, stretch: Stretch, threads: int
) -> NativeProgram:
    """Binds the file's tensors to native kernels. UnsupportedModel: a tensor type or an operation that they lack;
    EngineError: more threads than the system has."""
    tensors = bind(gguf, spec, GGML_BLOCKS.keys())
    program = compile_program(gguf, spec, tensors, layout, stretch)
    try:
        return NativeProgram(program, threads)
    except ValueError as error:
        raise UnsupportedModel(
            f"The model file {gguf.path.name} cannot be used on this backend.",
            f"The native kernels refuse it: {error}.",
            "Choose the backend 'reference', which is slow, or another model.",
        ) from error
    except RuntimeError as error:
        why, least = f"{error}.", "Choose fewer threads: one per physical core is the fastest."
        raise EngineError("The threads could not be started.", why[0].upper() + why[1:], least) from error


def compile_program(
    gguf: GgufFile, spec: ModelSpec, tensors: ModelTensors, layout: PageLayout, stretch: Stretch
) -> Program:
    """The native program of a stretch; buffer 0 is the stream. `gguf` must stay open while it is used."""
    emitter = Emitter(gguf, spec, layout)
    for block in stretch.blocks:
        _emit(emitter, block, tensors)
    return emitter.program()


def compile_experts(gguf: GgufFile, spec: ModelSpec, tensors: ModelTensors, layout: PageLayout, layer: int) -> Program:
    """The routed experts of one layer alone: buffers 0 normed rows, 1 routing, 2 the weighted sums."""
    emitter = Emitter(gguf, spec, layout)
    emit_routed(emitter, spec.layers[layer], tensors.layers[layer])
    return replace(emitter.program(), kv_layers=())


def _emit(emitter: Emitter, block: Block, tensors: ModelTensors) -> None:
    spec = emitter.spec
    if block.kind == "embedding":
        emitter.code.append(Embed(STREAM, emitter.weight(tensors.token_embd), spec.embedding_scale))
    elif block.kind == "head":
        norm, output = emitter.vector(tensors.output_norm), emitter.weight(tensors.output)
        scale = spec.logit_scale * tensors.output.scale
        emitter.code.append(Head(STREAM, norm, spec.norm_eps, output, scale, spec.logit_softcap))
    elif block.kind == "attention":
        emit_attention(emitter, spec.layers[block.layer], tensors.layers[block.layer])
    else:
        emit_ffn(emitter, spec.layers[block.layer], tensors.layers[block.layer])
