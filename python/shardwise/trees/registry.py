# SPDX-License-Identifier: Apache-2.0
"""Classes that are nodes of trees: registered here, in optree or in JAX, and dataclasses that hold arrays.

All functions use one optree namespace, which includes the classes in optree's global one.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from ..errors import message, shown
from ..process.foreign import native, node_of
from ..shardings.partition_spec import PartitionSpec
from ..shardings.sharding import NamedSharding

__all__ = [
    "NAMESPACE",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "SequenceKey",
    "adopt",
    "are_plain",
    "path_of",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "typed",
]

NAMESPACE = "shardwise"

_Class = TypeVar("_Class", bound=type)


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The step to a dict's value; prints as ``['key']``."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step to an element of a list or tuple; prints as ``[0]``."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step to a field of a dataclass or named tuple; prints as ``.name``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The step to a child of a registered class without keys; prints as ``[<flat index 0>]``."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


class _KeyEntry(optree.PyTreeEntry):
    """A step into a registered class: its entry is a key, or an index if the class has no keys."""


def path_of(accessor: Iterable[optree.PyTreeEntry]) -> tuple[Any, ...]:
    """optree's path to a leaf in the keys of JAX."""
    return tuple([_key_of(entry) for entry in accessor])


def _key_of(entry: optree.PyTreeEntry) -> Any:
    if isinstance(entry, optree.NamedTupleEntry):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.MappingEntry):
        return DictKey(entry.entry)
    if isinstance(entry, optree.SequenceEntry):
        return SequenceKey(entry.entry)
    if isinstance(entry, optree.GetAttrEntry):
        return GetAttrKey(entry.entry)
    return FlattenedIndexKey(entry.entry) if isinstance(entry.entry, int) else entry.entry


def typed(value: Any) -> Any:
    """The value with its type: ``1``, ``1.0`` and ``True`` are equal, but make different programs."""
    if type(value) is tuple:
        return tuple([typed(item) for item in value])
    return type(value), value.hex() if type(value) is float else value


class _Static:
    """Static data of an instance of ``cls``, compared with their types. TypeError unless they are hashable."""

    __slots__ = ("_key", "value")

    def __init__(self, cls: type, value: Any) -> None:
        self.value = value
        self._key = typed(value)
        try:  # optree does not check this, but a program must not depend on mutable data
            hash(self._key)
        except TypeError as error:
            rule = f"static data of {cls.__qualname__} must be hashable"
            raise TypeError(message("tree", rule, error, "use a tuple, or make it a field of data")) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and bool(self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


_lock = threading.RLock()
_automatic: set[type] = set()  # registered automatically at the first instance; the user's own registration replaces it


def _register(what: str, cls: Any, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    if not isinstance(cls, type):
        raise TypeError(message(what, "takes a class", repr(cls)))
    with _lock:
        if cls in _automatic:
            optree.unregister_pytree_node(cls, namespace=NAMESPACE)
            _automatic.discard(cls)
        try:
            optree.register_pytree_node(cls, flatten, unflatten, path_entry_type=_KeyEntry, namespace=NAMESPACE)
        except ValueError:
            raise ValueError(message(what, "a class must be registered once", f"{cls.__qualname__} again")) from None


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Register a class as a tree node, so that jit, grad, vmap and shardings reach the arrays in it.

    Args:
        nodetype: the class; its subclasses are registered on their own.
        flatten_func: takes an instance and returns ``(children, static data)``. Static data
            must be hashable; programs are cached by their value and type.
        unflatten_func: takes ``(static data, children)`` and returns an instance. Children may be traced values.
        flatten_with_keys_func: as ``flatten_func``, with pairs ``(key, child)``; keys name the children in paths.

    Raises:
        TypeError: not a class. ValueError: the class is already registered.

    Source: `jax.tree_util.register_pytree_node`.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> class Affine:
    ...     def __init__(self, w, b):
    ...         self.w, self.b = w, b
    >>> sw.register_pytree_node(Affine, lambda a: ((a.w, a.b), None), lambda _, children: Affine(*children))
    >>> sw.tree.leaves(Affine(1, {"bias": 2}))
    [1, 2]
    """

    def flatten(x: Any) -> tuple[Any, ...]:
        if flatten_with_keys_func is None:
            children, static = flatten_func(x)
            return children, _Static(nodetype, static)
        keyed, static = flatten_with_keys_func(x)
        keyed = list(keyed)
        return [child for _, child in keyed], _Static(nodetype, static), [key for key, _ in keyed]

    _register("register_pytree_node", nodetype, flatten, lambda static, xs: unflatten_func(static.value, xs))


def register_pytree_node_class(cls: _Class) -> _Class:
    """Register a class with ``tree_flatten`` and a classmethod ``tree_unflatten`` as a tree node. A decorator.

    ``x.tree_flatten()`` returns ``(children, static data)``, ``cls.tree_unflatten(static data, children)`` an instance.

    Raises:
        TypeError: not a class, or a method is missing. ValueError: the class is already registered.

    Source: `jax.tree_util.register_pytree_node_class`.
    """
    methods: Any = cls
    for name in ("tree_flatten", "tree_unflatten"):
        if not hasattr(cls, name):
            raise TypeError(message("register_pytree_node_class", f"the class must have a method {name}", repr(cls)))
    register_pytree_node(cls, lambda x: x.tree_flatten(), methods.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Register a dataclass as a tree node. A decorator, with or without arguments.

    Dataclasses that hold arrays are trees without registration. Register one to choose its static fields, or if its
    fields hold only numbers.

    Args:
        nodetype: the dataclass, or another class whose constructor takes the fields as keywords.
        data_fields: fields that hold arrays or trees; default: all but those with ``metadata={"static": True}``.
        meta_fields: hashable static fields; required if and only if ``data_fields`` is given.
        drop_fields: fields with a default that unflattened instances do not keep.

    Returns:
        The class.

    Raises:
        TypeError: only one of ``data_fields`` and ``meta_fields``, or neither for a class that is not a
            dataclass. ValueError: missing or unknown fields, fields in both, or the class is already registered.

    Source: `jax.tree_util.register_dataclass`.

    >>> from dataclasses import dataclass, field
    >>> import shardwise as sw
    >>> @sw.register_dataclass
    ... @dataclass
    ... class Layer:
    ...     w: float
    ...     activation: str = field(metadata={"static": True})
    >>> sw.tree.map(lambda x: x + 1, Layer(1.0, "relu"))
    Layer(w=2.0, activation='relu')
    """
    if nodetype is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    data, meta = _checked_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = tuple([GetAttrKey(name) for name in data])

    def flatten(x: Any) -> tuple[Any, ...]:
        static = tuple([getattr(x, name) for name in meta])
        return [getattr(x, name) for name in data], _Static(nodetype, static), keys

    def unflatten(static: _Static, children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(meta, static.value)), **dict(zip(data, children)))

    _register("register_dataclass", nodetype, flatten, unflatten)
    return nodetype


def _checked_fields(
    cls: Any, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None, drop_fields: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the data and of the static fields."""
    what = "register_dataclass"
    for option, names in {"data_fields": data_fields, "meta_fields": meta_fields, "drop_fields": drop_fields}.items():
        is_listed = isinstance(names, (tuple, list, set, frozenset)) and all(isinstance(n, str) for n in names)
        if names is not None and not is_listed:
            raise TypeError(message(what, f"{option} must be a sequence of names", shown(names)))
    if (data_fields is None) != (meta_fields is None):
        got = f"data_fields={data_fields!r}, meta_fields={meta_fields!r}"
        raise TypeError(message(what, "data_fields and meta_fields must be given together", got))
    is_dataclass = isinstance(cls, type) and dataclasses.is_dataclass(cls)
    fields = dataclasses.fields(cls) if is_dataclass else ()
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            way_out = "decorate it with @dataclass first, or name data_fields and meta_fields"
            raise TypeError(message(what, "takes a dataclass", repr(cls), way_out))
        kept = [field for field in fields if field.name not in drop_fields]
        for field in kept:
            if not field.init:
                way_out = "name it in drop_fields if __post_init__ computes it"
                raise ValueError(message(what, "all fields must be in __init__", repr(field.name), way_out))
        return tuple(f.name for f in kept if not _is_static(f)), tuple(f.name for f in kept if _is_static(f))
    if is_dataclass:
        init = {field.name for field in fields if field.init} - set(drop_fields)
        missing, unknown = init - {*data_fields, *meta_fields}, {*data_fields, *meta_fields} - init
        rule = "data_fields and meta_fields must name every init field, and no other"
        if missing:
            got = f"none of {', '.join(sorted(missing))}"
            raise ValueError(message(what, rule, got, "add them, or name them in drop_fields"))
        if unknown:
            raise ValueError(message(what, rule, ", ".join(sorted(unknown))))
    both = set(data_fields) & set(meta_fields)
    if both:
        rule = "a field must be in one of data_fields and meta_fields"
        raise ValueError(message(what, rule, f"{', '.join(sorted(both))} in both"))
    return tuple(data_fields), tuple(meta_fields)


def _is_static(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get("static", False))


_leaf_classes: set[type] = set()  # never nodes: checking the class of a leaf is enough
_LEAF_MODULES = ("builtins", "numpy", "ml_dtypes", "jaxlib", "shardwise")


def are_plain(leaves: list[Any]) -> bool:
    """Whether the classes of all leaves are known to have no nodes."""
    return _leaf_classes.issuperset(map(type, leaves))


def adopt(leaves: list[Any]) -> bool:
    """Register leaf classes that are trees to the user. Returns whether there are any; then flatten again."""
    if are_plain(leaves):
        return False
    with _lock:
        return any(_adopted(leaf) for leaf in leaves if type(leaf) not in _leaf_classes)


def _adopted(leaf: Any) -> bool:
    cls = type(leaf)
    if cls in _automatic:  # by an earlier leaf, or by another thread
        return True
    if cls.__module__.partition(".")[0] in _LEAF_MODULES or isinstance(leaf, type):
        _leaf_classes.add(cls)
        return False
    if node_of(leaf) is not None:
        _register("register_pytree_node", cls, _flattened_as_foreign, _unflattened_as_foreign)
    elif hasattr(cls, "__array__"):
        _leaf_classes.add(cls)
        return False
    elif dataclasses.is_dataclass(cls) and all(f.init for f in dataclasses.fields(cls)) and _holds_arrays(leaf):
        register_dataclass(cls)
    else:
        return False
    _automatic.add(cls)
    return True


def _flattened_as_foreign(x: Any) -> tuple[Any, ...]:
    node = node_of(x)
    assert node is not None
    return node.children, _Static(type(x), node.structure), node.keys


def _unflattened_as_foreign(static: _Static, children: Any) -> Any:
    return static.value.unflatten(children)


def _holds_arrays(x: Any) -> bool:
    """Whether a leaf is an array or a sharding, or a dataclass that holds some."""
    if isinstance(x, type):
        return False
    if (hasattr(x, "shape") and hasattr(x, "dtype")) or isinstance(native(x), (PartitionSpec, NamedSharding)):
        return True
    if not dataclasses.is_dataclass(x):
        return False
    data = [getattr(x, field.name, None) for field in dataclasses.fields(x) if field.init and not _is_static(field)]
    leaves: list[Any] = optree.tree_leaves(data, namespace=NAMESPACE)  # type: ignore[arg-type]
    return any(map(_holds_arrays, leaves))
