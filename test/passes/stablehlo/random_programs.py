"""Random StableHLO programs over a few small shapes, for tests that compare before and after."""

import random

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import shape_of, tensor_type
from lamina.dialects.vendors import ir

F32, I32 = np.float32, np.int32
SHAPES = [(), (3,), (4,), (4, 3), (3, 4), (12,), (1, 4), (4, 1), (40, 3)]
UNARY = [hlo.negate, hlo.abs, hlo.exponential, hlo.tanh, hlo.sine, hlo.floor, hlo.logistic]
BINARY = [hlo.add, hlo.subtract, hlo.multiply, hlo.maximum, hlo.minimum, hlo.divide]


class Program:
    """Grows a program op by op, keeping the values so far by shape."""

    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.values: dict[tuple[int, ...], list[ir.Value]] = {}

    def module(self) -> ir.Module:
        """A module with `main` of a few arguments that returns several values."""
        module = ir.Module.create()
        types = [tensor_type(s, F32) for s in [(4, 3), (3,), (4,), (), (3, 4), (40, 3)]]
        with ir.InsertionPoint(module.body):
            function, block = hlo.function("main", types, [])
            with ir.InsertionPoint(block):
                for argument in block.arguments:
                    self.keep(argument)
                for _ in range(self.size):
                    self.grow(depth=0)
                results = [self.pick() for _ in range(self.random.randint(1, 4))]
                hlo.return_(results)
        of = ir.FunctionType.get(types, [v.type for v in results])
        function.attributes["function_type"] = ir.TypeAttr.get(of)
        assert module.operation.verify()
        return module

    def keep(self, value: ir.Value) -> None:
        self.values.setdefault(shape_of(value.type), []).append(value)

    def pick(self, shape: tuple[int, ...] | None = None) -> ir.Value:
        """A value of a shape, late ones more likely; a constant if there is none."""
        if shape is None:
            shape = self.random.choice(list(self.values))
        known = self.values.get(shape)
        if not known or self.random.random() < 0.05:
            if self.random.random() < 0.5:
                return hlo.full(self.random.choice([0, 1, -1, 2, 0.5]), shape, F32)
            return hlo.constant(np.asarray(np.random.RandomState(0).rand(*shape), F32))
        return known[min(int(self.random.expovariate(0.4)), len(known) - 1) * -1 - 1]

    def grow(self, depth: int) -> None:
        makers = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.broadcast,
            self.reduce, self.transpose, self.reshape, self.slice, self.dot, self.update,
            self.select, self.concatenate, self.dynamic_slice, self.arg_reduce, self.scatter,
        ]  # fmt: skip
        if depth < 2 and self.random.random() < 0.06:
            self.random.choice([self.while_, self.if_])(depth)
        else:
            self.keep(self.random.choice(makers)())

    def unary(self) -> ir.Value:
        return self.random.choice(UNARY)(self.pick())

    def binary(self) -> ir.Value:
        x = self.pick()
        return self.random.choice(BINARY)(x, self.pick(shape_of(x.type)))

    def select(self) -> ir.Value:
        x = self.pick()
        y = self.pick(shape_of(x.type))
        return hlo.select(hlo.compare(x, y, "LT"), y, self.pick(shape_of(x.type)))

    def broadcast(self) -> ir.Value:
        shape, dims, source = self.random.choice(
            [((4, 3), (1,), (3,)), ((4, 3), (0,), (4,)), ((4, 3), (), ()), ((3, 4), (1,), (4,)),
             ((4, 1), (0,), (4,)), ((1, 4), (1,), (4,)), ((40, 3), (1,), (3,)), ((3,), (), ()),
             ((3, 4), (0, 1), (1, 4))]
        )  # fmt: skip
        return hlo.broadcast_in_dim(self.pick(source), shape, dims)

    def reduce(self) -> ir.Value:
        x = self.pick(self.random.choice([(4, 3), (3, 4), (40, 3), (3,), (12,)]))
        rank = len(shape_of(x.type))
        dims = self.random.choice([[0], [rank - 1], list(range(rank))])
        body, init = self.random.choice([(hlo.add, 0.0), (hlo.maximum, -np.inf)])
        return hlo.reduce([x], [hlo.full(init, (), F32)], dims, body)[0]

    def arg_reduce(self) -> ir.Value:
        """A reduction of two arrays at once."""
        x = self.pick(self.random.choice([(4, 3), (3, 4)]))
        zero = hlo.full(0, (), F32)

        def body(a, b, c, d):
            return [hlo.add(a, c), hlo.maximum(b, d)]

        y = self.pick(shape_of(x.type))
        return self.random.choice(hlo.reduce([x, y], [zero, zero], (1,), body))

    def transpose(self) -> ir.Value:
        return hlo.transpose(self.pick(self.random.choice([(4, 3), (3, 4)])), (1, 0))

    def reshape(self) -> ir.Value:
        x = self.pick(self.random.choice([(4, 3), (12,), (4,), (3, 4), (4, 1)]))
        count = int(np.prod(shape_of(x.type)))
        return hlo.reshape(x, self.random.choice([s for s in SHAPES if int(np.prod(s)) == count]))

    def slice(self) -> ir.Value:
        return hlo.slice(self.pick((40, 3)), (2, 0), (10, 3), (2, 1))

    def dynamic_slice(self) -> ir.Value:
        start = hlo.convert(self.pick(()), I32)
        return hlo.dynamic_slice(self.pick((40, 3)), (start, hlo.full(0, (), I32)), (4, 3))

    def update(self) -> ir.Value:
        start = hlo.convert(self.pick(()), I32)
        return hlo.dynamic_update_slice(
            self.pick((40, 3)), self.pick((4, 3)), (start, hlo.full(0, (), I32))
        )

    def scatter(self) -> ir.Value:
        indices = hlo.reshape(hlo.convert(self.pick((3,)), I32), (3, 1))
        return hlo.scatter(
            [self.pick((12,))], indices, [self.pick((3,))], update_window_dims=(),
            inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
            body=hlo.add,
        )[0]  # fmt: skip

    def dot(self) -> ir.Value:
        return hlo.dot_general(self.pick((4, 3)), self.pick((3, 4)), (), (), (1,), (0,), F32)

    def concatenate(self) -> ir.Value:
        return hlo.concatenate([self.pick((3,)), self.pick((4,)), self.pick((4,)),
                                hlo.reshape(self.pick(()), (1,))], 0)  # fmt: skip

    def while_(self, depth: int) -> None:
        x, y = self.pick(), self.pick()
        outside = {shape: list(values) for shape, values in self.values.items()}

        def condition(i, *_):
            return hlo.compare(i, hlo.full(2, (), I32), "LT")

        def body(i, a, b):
            self.values = {shape: list(values) for shape, values in outside.items()}
            self.keep(a)
            self.keep(b)
            for _ in range(4):
                self.grow(depth + 1)
            bounded = [hlo.tanh(self.pick(shape_of(v.type))) for v in (a, b)]
            return [hlo.add(i, hlo.full(1, (), I32)), *bounded]

        results = hlo.while_([hlo.full(0, (), I32), x, y], condition, body)
        self.values = outside
        for result in results[1:]:
            self.keep(result)

    def if_(self, depth: int) -> None:
        like = self.pick()
        outside = {shape: list(values) for shape, values in self.values.items()}
        predicate = hlo.compare(self.pick(()), hlo.full(0, (), F32), "LT")

        def branch():
            self.values = {shape: list(values) for shape, values in outside.items()}
            for _ in range(3):
                self.grow(depth + 1)
            return [self.pick(shape_of(like.type))]

        (result,) = hlo.if_(predicate, branch, branch, [like.type])
        self.values = outside
        self.keep(result)
