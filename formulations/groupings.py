"""Groups, trees and graphs of kernels from their names, as arguments of declarations.

    groups_by(names, by)       ((0, 2), (1,)): kernels with the same label
    tree_groups(tree, names)   one group for each node, parents first, of a nested dict
                               or of names like "image/colour/red"
    graph_edges(edges, names)  ((0, 1), (1, 2)): pairs of kernels

All are tuples of numbers of kernels: they can be parameters of a declaration.

    @mklopt.formulation
    def tree(u, groups=(), lam=1.0):
        return lam * sum(cp.norm(u[list(group)]) for group in groups)

    tree(groups=tree_groups(fitted.names), lam=0.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..util.checks import check_list, short, unknown
from .base import Groups


def groups_by(
    names: Iterable[str], by: str | Callable[[str], Any] | Mapping[Any, Iterable[str]]
) -> Groups:
    """Groups of kernels with the same label.

    Parameters
    ----------
    names : sequence of str
        The names of all kernels, such as `fitted.names`.
    by : str, callable or mapping
        A text: the label is what stands before it in the name. A function: it gives
        the label of a name. A mapping: labels, and the names that have them.

    Returns
    -------
    tuple of tuples of int
        The kernels of each group, in the order in which labels first appear.

    Raises
    ------
    ValueError
        Where a name is not known.

    Examples
    --------
    >>> groups_by(["gaussian(1)", "linear", "gaussian(3)"], "(")
    ((0, 2), (1,))
    """
    names = _names(names)
    if isinstance(by, Mapping):
        place = _places(names)
        return tuple(tuple(place(name) for name in some) for some in by.values())
    if not isinstance(by, str) and not callable(by):
        raise ValueError(f"by = {short(by)}; give a text, a function or a dictionary")
    label = by if callable(by) else lambda name: name.partition(by)[0]
    found: dict[Any, list[int]] = {}
    for m, name in enumerate(names):
        found.setdefault(label(name), []).append(m)
    return tuple(map(tuple, found.values()))


def tree_groups(
    tree: Mapping | Iterable[str],
    names: Iterable[str] | None = None,
    *,
    separator: str = "/",
) -> Groups:
    """One group of kernels for each node of a tree.

    Parameters
    ----------
    tree : nested mapping, or sequence of str
        A mapping from names of nodes to mappings or to lists of names of kernels; or
        the names of all kernels, written as paths.
    names : sequence of str, optional
        The names of all kernels, in their order; with a mapping only. By default their
        order in the mapping.
    separator : str
        What stands between the parts of a path.

    Returns
    -------
    tuple of tuples of int
        The kernels of each node, parents before their children; no node twice. The
        root has all kernels.

    Raises
    ------
    ValueError
        Where a name is not known.

    Examples
    --------
    >>> tree_groups(["image/colour", "image/edges", "text"])
    ((0, 1, 2), (0, 1), (0,), (1,), (2,))
    >>> tree_groups({"image": ["a", "b"], "text": ["c"]})
    ((0, 1, 2), (0, 1), (2,))
    """
    if isinstance(tree, Mapping):
        leaves = list(_leaves(tree))
        place = _places(leaves if names is None else _names(names))
        nodes = [[place(name) for name in node] for node in _nodes(tree)]
    else:
        nodes = list(_prefixes([name.split(separator) for name in _names(tree)]))
    return tuple(dict.fromkeys(tuple(sorted(node)) for node in nodes))


def graph_edges(edges: Iterable[Sequence[str]], names: Iterable[str]) -> Groups:
    """Pairs of kernels from pairs of their names.

    Parameters
    ----------
    edges : sequence of pairs of str
        The edges of a graph.
    names : sequence of str
        The names of all kernels.

    Returns
    -------
    tuple of pairs of int
        The same edges, as numbers of kernels.

    Raises
    ------
    ValueError
        Where a name is not known, or an edge has not two ends.

    Examples
    --------
    >>> graph_edges([("a", "b"), ("b", "c")], ["a", "b", "c"])
    ((0, 1), (1, 2))
    """
    place, found = _places(_names(names)), []
    for edge in check_list(edges, "edges", "pairs of names of kernels"):
        if isinstance(edge, str) or len(edge) != 2:
            raise ValueError(f"edge {short(edge)}; give pairs of names of kernels")
        found.append((place(edge[0]), place(edge[1])))
    return tuple(found)


def _names(names: Any) -> list[str]:
    found = check_list(names, "names", "the names of kernels, such as fitted.names")
    for name in found:
        if not isinstance(name, str):
            raise ValueError(f"name {short(name)} is no text; give names of kernels")
    return found


def _places(names: list[str]) -> Callable[[str], int]:
    """The number of the kernel with a name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two kernels are called {twice!r}; give each its own name")
    known = {name: m for m, name in enumerate(names)}

    def place(name: Any) -> int:
        if name in known:
            return known[name]
        raise ValueError(unknown("kernel", name, names))

    return place


def _leaves(tree: Any) -> Iterator[str]:
    """The names of all kernels below a node."""
    if isinstance(tree, str):
        yield tree
        return
    for child in tree.values() if isinstance(tree, Mapping) else tree:
        yield from _leaves(child)


def _nodes(tree: Any) -> Iterator[list[str]]:
    """The kernels of a node, then those of the nodes below it."""
    yield list(dict.fromkeys(_leaves(tree)))
    if isinstance(tree, Mapping):
        for child in tree.values():
            yield from _nodes(child)


def _prefixes(paths: list[list[str]]) -> Iterator[list[int]]:
    """The kernels below every prefix of a path, the short ones first in each branch."""
    prefixes = dict.fromkeys(
        tuple(path[:depth]) for path in paths for depth in range(len(path) + 1)
    )
    for prefix in prefixes:
        yield [
            m for m, path in enumerate(paths) if tuple(path[: len(prefix)]) == prefix
        ]
