"""GGUF model files: own mmap header reader, type table, dequantisation."""

from engine.gguf.file import GgufFile
from engine.gguf.tensors import TensorInfo
from engine.gguf.types import GGML_TYPES, GgmlType, type_name
from engine.gguf.values import MetadataArray, Scalar

__all__ = ["GGML_TYPES", "GgmlType", "GgufFile", "MetadataArray", "Scalar", "TensorInfo", "type_name"]
