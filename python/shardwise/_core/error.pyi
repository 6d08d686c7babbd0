# Written by `make stubs`; do not edit.
"""
Exceptions
"""
from __future__ import annotations
__all__: list[str] = ['DTypeError', 'Error', 'InternalError', 'MeshError', 'OutOfMemoryError', 'ParseError', 'ShapeError', 'ShardingError', 'ShardingWarning', 'UnsupportedError']
class Error(Exception):
    """
    Base of all errors of shardwise.
    """
class MeshError(Error, ValueError):
    """
    An invalid or missing mesh.
    """
class ShardingError(Error, ValueError):
    """
    A sharding that does not fit its mesh or tensor.
    """
class ShapeError(Error, ValueError):
    """
    Shapes or attributes that do not fit an op.
    """
class DTypeError(Error, TypeError):
    """
    A dtype that an op does not take.
    """
class ParseError(Error, ValueError):
    """
    Malformed text; has .line and .column.
    """
    line: int
    column: int
class UnsupportedError(Error, TypeError):
    """
    An operation that is not supported on traced or sharded arrays.
    """
class InternalError(Error, RuntimeError):
    """
    A bug in shardwise.
    """
class OutOfMemoryError(Error, MemoryError):
    """
    A buffer that does not fit into memory, or a program that does not fit into its limit.
    """
class ShardingWarning(UserWarning):
    """
    Legal annotations that are probably not meant.
    """
