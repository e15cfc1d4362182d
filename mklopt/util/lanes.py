"""Rows of a few numbers in registers: sums of rows and products of rows.

    add_rows(A, i, T, start, columns, first, last, j)    A[j] = A[i] + Σ T[start + c]
    dot_rows(A, i, B, j)                                 ⟨A[i], B[j]⟩
    exp_row(A, i, c, b)                                  b = exp(c A[i])
    squares_of_row(a, b)                                 Σ b a² for two rows
    add_multiple(a, c, b)                                a += c b for two rows
    add_product(y, start, A, i, b)                       y[start:] += A[i] b

where c are the numbers columns[first:last]. y is an array of any shape, flat.

Arrays are contiguous, with rows of WIDTH numbers. A loop over k in numba would load and
store the sum for every row; here it stays in registers, which takes half of the time.
LLVM makes code for these vectors for every processor.

Guarantee. `add_rows` adds strictly in the order of k, in plain float64; `exp_row` has
the bits of exponential.exp. `dot_rows` adds in one fixed order, the same on every
processor.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from .compiled import inlined, written
from .exponential import BACK, BIAS, LN2, LN2_REST, LOWEST, PER_LN2, TO_INTEGER, series

WIDTH, LANES = 48, 8  # numbers of a row, and of a register
DOT_CHAIN = WIDTH // LANES + 4  # roundings of a product in `dot_rows`
INT, PLACE = ir.IntType(64), ir.IntType(32)
VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class _Code:
    """What is needed to write code: the builder and the arguments of a function."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.context, self.builder, self.args = context, builder, args
        self._array = lambda k: context.make_array(signature.args[k])(
            context, builder, args[k]
        )

    def data(self, k: int) -> Any:
        """The address of the first number of argument k."""
        return self._array(k).data

    def places(self, data: Any, start: Any) -> list:
        """The addresses of the vectors of WIDTH numbers."""
        start = self.builder.gep(data, [start])
        first = self.builder.bitcast(start, VECTOR.as_pointer())
        return [self.builder.gep(first, [INT(v)]) for v in range(WIDTH // LANES)]

    def row(self, data: Any, number: Any) -> list:
        """The vectors of a row."""
        places = self.places(data, self.builder.mul(number, INT(WIDTH)))
        return [self.builder.load(place, align=8) for place in places]

    def save(self, vectors: list, places: list) -> Any:
        """Store vectors; returns nothing for a function that returns nothing."""
        for vector, place in zip(vectors, places):
            self.builder.store(vector, place, align=8)
        return self.context.get_dummy_value()

    def same(self, number: Any) -> Any:
        """A vector of equal numbers, from one number at run time."""
        one = self.builder.insert_element(ir.Constant(VECTOR, None), number, PLACE(0))
        mask = ir.Constant(ir.VectorType(PLACE, LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, one, mask)

    def merged(self, kind: Any, before: Any, block: Any) -> Any:
        """A value that is `before` when control comes from `block`."""
        phi = self.builder.phi(kind)
        phi.add_incoming(before, block)
        return phi


@written
def add_rows(
    typing: Any,
    A: Any,
    i: Any,
    T: Any,
    start: Any,
    columns: Any,
    first: Any,
    last: Any,
    j: Any,
) -> Any:
    """A[j] = A[i] + Σ T[start + columns[k]] for first ≤ k < last, in this order."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        A, T, columns = (code.data(k) for k in (0, 2, 4))
        begin, before = code.row(A, args[1]), builder.block
        loop, after = (builder.append_basic_block(name) for name in ("loop", "after"))
        builder.cbranch(builder.icmp_signed("<", args[5], args[6]), loop, after)
        builder.position_at_end(loop)
        k = code.merged(INT, args[5], before)
        sums = [code.merged(VECTOR, vector, before) for vector in begin]
        column = builder.sext(builder.load(builder.gep(columns, [k])), INT)
        terms = code.row(T, builder.add(column, args[3]))
        more = [builder.fadd(*pair) for pair in zip(sums, terms)]
        following = builder.add(k, INT(1))
        for old, new in zip([k, *sums], [following, *more]):
            old.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, args[6]), loop, after)
        builder.position_at_end(after)
        found = [code.merged(VECTOR, vector, before) for vector in begin]
        for phi, new in zip(found, more):
            phi.add_incoming(new, loop)
        return code.save(found, code.places(A, builder.mul(args[7], INT(WIDTH))))

    return types.void(A, i, T, start, columns, first, last, j), write


@written
def dot_rows(typing: Any, A: Any, i: Any, B: Any, j: Any) -> Any:
    """⟨A[i], B[j]⟩."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        rows = zip(code.row(code.data(0), args[1]), code.row(code.data(2), args[3]))
        return _summed(builder, [builder.fmul(*pair) for pair in rows])

    return types.float64(A, i, B, j), write


@written
def squares_of_row(typing: Any, a: Any, b: Any) -> Any:
    """Σ b a² for two rows, in the order of `dot_rows`."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        rows = zip(*(code.row(code.data(k), INT(0)) for k in range(2)))
        return _summed(builder, [builder.fmul(x, builder.fmul(x, y)) for x, y in rows])

    return types.float64(a, b), write


def _summed(builder: Any, vectors: list) -> Any:
    """The sum of all numbers: by lanes, then halves until one number is left."""
    total, *others = vectors
    for vector in others:
        total = builder.fadd(total, vector)
    size = LANES
    while size > 1:
        size //= 2
        low, high = (_part(builder, total, start, size) for start in (0, size))
        total = builder.fadd(low, high)
    return builder.extract_element(total, PLACE(0))


class _Formula:
    """A vector in a formula: + − * with vectors and numbers."""

    def __init__(self, builder: Any, value: Any):
        self.builder, self.value = builder, value

    def _with(self, operation: str, a: Any, b: Any) -> "_Formula":
        values = [x.value if isinstance(x, _Formula) else _constant(x) for x in (a, b)]
        return _Formula(self.builder, getattr(self.builder, operation)(*values))

    def __add__(self, other: Any) -> "_Formula":
        return self._with("fadd", self, other)

    def __radd__(self, other: Any) -> "_Formula":
        return self._with("fadd", other, self)

    def __sub__(self, other: Any) -> "_Formula":
        return self._with("fsub", self, other)

    def __mul__(self, other: Any) -> "_Formula":
        return self._with("fmul", self, other)

    def select(self, below: float, this: Any, other: Any) -> "_Formula":
        """`this` where the vector is less than `below`, `other` elsewhere."""
        less = self.builder.fcmp_ordered("<", self.value, _constant(below))
        values = [
            x.value if isinstance(x, _Formula) else _constant(x) for x in (this, other)
        ]
        return _Formula(self.builder, self.builder.select(less, *values))


def _constant(number: float) -> Any:
    return ir.Constant(VECTOR, [float(number)] * LANES)


def _exp(builder: Any, x: _Formula) -> _Formula:
    """What exponential.exp does, for a vector."""
    back = x.select(LOWEST, 0.0, BACK)
    x = x.select(LOWEST, LOWEST, x)
    shifted = x * PER_LN2 + TO_INTEGER
    k = shifted - TO_INTEGER
    r = (x - k * LN2) - k * LN2_REST
    whole = ir.VectorType(INT, LANES)
    bits = builder.bitcast(shifted.value, whole)
    bits = builder.add(bits, ir.Constant(whole, [BIAS] * LANES))
    bits = builder.shl(bits, ir.Constant(whole, [52] * LANES))
    power = _Formula(builder, builder.bitcast(bits, VECTOR))
    return (series(r) * power) * back


@written
def exp_row(typing: Any, A: Any, i: Any, c: Any, b: Any) -> Any:
    """b = exp(c A[i]), of numbers c A[i] ≤ 0."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        c = _Formula(builder, code.same(args[2]))
        rows = [_Formula(builder, x) * c for x in code.row(code.data(0), args[1])]
        found = [_exp(builder, x).value for x in rows]
        return code.save(found, code.places(code.data(3), INT(0)))

    return types.void(A, i, c, b), write


@written
def add_multiple(typing: Any, a: Any, c: Any, b: Any) -> Any:
    """a += c b for two rows."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        c = code.same(args[1])
        a, b = code.row(code.data(0), INT(0)), code.row(code.data(2), INT(0))
        found = [builder.fadd(x, builder.fmul(c, y)) for x, y in zip(a, b)]
        return code.save(found, code.places(code.data(0), INT(0)))

    return types.void(a, c, b), write


@written
def add_product(typing: Any, y: Any, start: Any, A: Any, i: Any, b: Any) -> Any:
    """y[start : start + WIDTH] += A[i] b, for all numbers of y in one line."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args)
        places = code.places(code.data(0), args[1])
        old = [builder.load(place, align=8) for place in places]
        rows = zip(code.row(code.data(2), args[3]), code.row(code.data(4), INT(0)))
        products = [builder.fmul(*pair) for pair in rows]
        return code.save([builder.fadd(*pair) for pair in zip(old, products)], places)

    return types.void(y, start, A, i, b), write


def _part(builder: Any, vector: Any, start: int, size: int) -> Any:
    """`size` numbers of a vector, from `start` on."""
    mask = ir.Constant(ir.VectorType(PLACE, size), list(range(start, start + size)))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


@inlined()
def rows_of_zeros(count):
    """(count, WIDTH) zeros that begin where a line of the cache does."""
    memory = np.zeros(count * WIDTH + LANES)
    start = -(memory.ctypes.data // 8) % LANES
    return memory[start : start + count * WIDTH].reshape(count, WIDTH)
