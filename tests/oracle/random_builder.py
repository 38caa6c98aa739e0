"""Builds a random program node by node: names, types, contexts, and the order of what touches state.

Order. A tensor read from a ref variable is an alias: whoever looks into it sees the variable as it is at that time. So a value
knows of which variables it may be an alias; a node that only hands its input on (Identity, Reshape, Switch ...) hands on the
alias, and every other node reads those variables when it runs. In a strict program each node that touches a variable gets
control edges from all before it that conflict (one of the two writes) unless it depends on them anyway. What happens is then
determined, whatever order the rest runs in.

Contexts. The root, a branch of a conditional, the body of a loop, a function. Values of an outer context come in by Switch, by
Enter or as an argument. Whoever enters one says which variables it may touch; what conflicts before orders the entry, and the
exit counts as a touch itself.
"""
import functools
import operator

import numpy as np

from random_graph import (BOOL, DOUBLE, FLOAT, INT32, INT64, STRING, Node, Program, array, bool_, int_, shape,
                          text, type_)
from values import NUMPY

NUMBERS = (FLOAT, INT32, DOUBLE, INT64)
NOTHING = frozenset()


class Value:
    __slots__ = ('ref', 'dtype', 'dims', 'alias', 'is_ref', 'ctx')

    def __init__(self, ref, dtype, dims, alias=NOTHING, is_ref=False, ctx=None):
        self.ref, self.dtype, self.dims, self.alias, self.is_ref, self.ctx = ref, dtype, dims, alias, is_ref, ctx

    def node(self):
        return self.ref.split(':')[0]


class Variable:
    """State: a variable by reference or by handle, a queue, a stack."""

    def __init__(self, name, kind, dtype, dims):
        self.name, self.kind, self.dtype, self.dims = name, kind, dtype, dims
        self.is_reshaped = False  # an assignment may give it another shape, so another buffer

    def __repr__(self):
        return self.name


class Context:
    def __init__(self, kind, parent, nodes, variables):
        self.kind, self.parent, self.nodes = kind, parent, nodes
        self.values, self.touched = [], {}  # touched: {variable: [(node, is_write)]}
        self.variables = variables          # those it may touch
        self.handles, self.captured = {}, {}
        self.pivot = None                   # what a node without inputs of this context depends on
        self.entry = None                   # the node that the entry was ordered by
        self.predicate, self.branch = None, 0  # of a conditional
        self.frame, self.parallel = '', 10     # of a loop
        self.args, self.outputs = [], {}       # of a function
        self.depth = parent.depth + 1 if parent else 0

    def is_in_loop(self):
        return self.kind == 'loop' or bool(self.parent and self.kind == 'cond' and self.parent.is_in_loop())


class Builder:
    def __init__(self, rng, is_strict=True):
        self.rng, self.is_strict = rng, is_strict
        self.program = Program()
        self.bits, self.before = {}, {}  # of a node by name: its number, the set of nodes it depends on
        self.count = 0
        self.variables = []
        self.is_calm = False
        self.before_results = {}
        self.lowered = set()  # nodes that TensorFlow replaces by others before it looks at what is fed
        self.ctx = self.root = Context('root', None, self.program.nodes, [])

    # ---- draws ----

    def chance(self, p):
        return self.rng.random() < p

    def below(self, n):
        return self.rng.randrange(n) if n > 0 else 0

    def pick(self, *choices):
        return self.rng.choice(choices)

    def draw_array(self, dtype, dims, low=-3, high=6):
        n = int(np.prod(dims))
        if dtype == STRING:
            flat = np.empty(n, object)
            flat[:] = [self.pick(b'', b'a', b'bc', b'a long text, beyond what is held inline') for _ in range(n)]
            return flat.reshape(dims)
        if dtype == BOOL:
            return np.array([self.chance(0.5) for _ in range(n)], np.bool_).reshape(dims)
        return np.array([self.rng.randint(low, high) for _ in range(n)]).astype(NUMPY[dtype]).reshape(dims)

    def draw_dims(self):
        return self.pick((), (), (2,), (2,), (3,), (2, 2), (1, 2), (1,))

    # ---- nodes ----

    def name(self, op):
        self.count += 1
        return f'{op.lower()[:9]}{self.count}'

    def mask_of(self, names):
        mask = 0
        for name in names:
            mask |= self.before[name]
        return mask

    def mask_of_inputs(self, inputs):
        """What has run when |inputs| are there. A result of what is lowered waits neither for all arguments nor for writes."""
        mask = 0
        for name in (i.split(':')[0] for i in inputs):
            mask |= self.before_results.get(name, self.before[name])
        return mask

    def add(self, op, inputs, attrs, outs, touches=(), controls=(), name=None):
        """Adds a node; Values of |outs|, pairs (type, dims)."""
        ctx = self.ctx
        name = name or self.name(op)
        controls = dict.fromkeys(controls)
        is_lowered = '_lower_using_switch_merge' in attrs
        if op == 'Merge':  # waits for one of them, nobody knows which
            mask = functools.reduce(operator.and_, (self.mask_of_inputs([i]) for i in inputs))
        else:
            mask = self.mask_of_inputs(inputs[:1] if is_lowered else inputs)
        mask |= self.mask_of(controls)
        if ctx.pivot and (not inputs or (touches and not mask >> self.bits[ctx.entry] & 1) or self.is_invariant(mask)):
            controls[ctx.pivot] = None
            mask |= self.before[ctx.pivot]
        if self.is_strict:
            mask = self.order(touches, mask, controls)
        self.append(name, op, [*inputs, *('^' + c for c in controls)], attrs, mask)
        if is_lowered:
            self.before_results[name] = mask
        for variable, is_write in touches:
            ctx.touched.setdefault(variable, []).append((name, is_write))
        return [Value(name if i == 0 else f'{name}:{i}', dtype, dims, ctx=ctx) for i, (dtype, dims) in enumerate(outs)]

    def is_invariant(self, mask):
        """Whether what depends on |mask| alone would run in the rounds after a loop's last; TensorFlow's client ties that too."""
        ctx = self.ctx
        while ctx.kind == 'cond':
            ctx = ctx.parent
        return ctx.kind == 'loop' and ctx.pivot is not None and not mask >> self.bits[ctx.pivot] & 1

    def append(self, name, op, inputs, attrs, mask):
        self.bits[name] = len(self.bits)
        self.before[name] = mask | 1 << self.bits[name]
        self.ctx.nodes.append(Node(name, op, inputs, attrs))
        return self.ctx.nodes[-1]

    def order(self, touches, mask, controls):
        for variable, is_write in touches:
            for other, other_writes in reversed(self.ctx.touched.get(variable, [])):
                if (is_write or other_writes) and not mask >> self.bits[other] & 1:
                    controls[other] = None
                    mask |= self.before[other]
        return mask

    def reads(self, *values):
        """Touches of a node that looks into |values|."""
        return [(v, False) for value in values for v in sorted(value.alias, key=repr)]

    def passes(self, *values):
        """Touches of a node that hands them on: which buffer a variable has matters where assignments change it."""
        return [(v, False) for value in values for v in sorted(value.alias, key=repr) if v.is_reshaped]

    def compute(self, op, inputs, attrs, dtype, dims, controls=()):
        """A node that looks into its inputs; its one Value, which is added to the context."""
        value = self.add(op, [v.ref for v in inputs], attrs, [(dtype, dims)], self.reads(*inputs), controls)[0]
        self.ctx.values.append(value)
        return value

    def hand_on(self, op, inputs, attrs, dtype, dims, index=0, outputs=1, controls=(), reads=()):
        """A node whose output may be its first input's buffer."""
        value = self.add(op, [v.ref for v in inputs], attrs, [(dtype, dims)] * outputs,
                         self.passes(inputs[0]) + self.reads(*inputs[1:], *reads), controls)[index]
        value.alias = inputs[0].alias
        self.ctx.values.append(value)
        return value

    def const(self, dtype, dims=None, value=None, is_free=False):
        """A constant; |is_free|: without the control edge that ties it to a branch."""
        value = self.draw_array(dtype, dims) if value is None else np.asarray(value, NUMPY[dtype])
        pivot = self.ctx.pivot
        if is_free and not self.is_calm and not self.ctx.is_in_loop():
            self.ctx.pivot = None
        out = self.add('Const', [], {'dtype': type_(dtype), 'value': array(value)}, [(dtype, value.shape)])[0]
        self.ctx.pivot = pivot
        return out

    # ---- values ----

    def find(self, dtype=None, dims=None, deep=True):
        """A random value that is here or can be brought here; None when there is none."""
        found, ctx = [], self.ctx
        while ctx:
            found += [v for v in ctx.values[-12:] if (v.dtype in dtype if isinstance(dtype, tuple) else dtype in (None, v.dtype)) and
                      (dims is None or v.dims == dims)]
            ctx = ctx.parent if deep else None
        return self.bring(self.rng.choice(found)) if found else None

    def want(self, dtype, dims):
        """A value of that type and shape, a constant where there is no other."""
        value = self.find(dtype, dims) if self.chance(0.85) else None
        return value or self.const(dtype, dims, is_free=self.chance(0.2))

    def bring(self, value):
        """|value| of this context or one around it, in this context."""
        return self.bring_into(self.ctx, value)

    def bring_into(self, ctx, value):
        if value.ctx is ctx:
            return value
        if value.ref in ctx.captured:
            return ctx.captured[value.ref]
        outer = self.bring_into(ctx.parent, value)
        if ctx.kind == 'cond' and not self.is_calm and self.chance(0.1):
            return outer  # without a Switch: alive whichever branch is taken
        saved, self.ctx = self.ctx, ctx
        inner = getattr(self, 'bring_' + ctx.kind)(ctx, outer)
        inner.alias = outer.alias
        self.ctx = saved
        ctx.captured[value.ref] = inner
        return inner

    def bring_cond(self, ctx, value):
        pair = self.add('Switch', [value.ref, ctx.predicate], {'T': type_(value.dtype)}, [(value.dtype, value.dims)] * 2,
                        self.passes(value))
        return pair[ctx.branch]

    def bring_loop(self, ctx, value):
        pivot, ctx.pivot = ctx.pivot, None
        inner = self.add('Enter', [value.ref], {'T': type_(value.dtype), 'frame_name': text(ctx.frame), 'is_constant': bool_(True),
                                                'parallel_iterations': int_(ctx.parallel)}, [(value.dtype, value.dims)])[0]
        ctx.pivot = pivot
        return inner

    def bring_function(self, ctx, value):
        name = self.name('arg')  # no other function's: values around this one are known by their names, too
        ctx.args.append((name, value))
        self.bits[name], self.before[name] = len(self.bits), 0
        return Value(name, value.dtype, value.dims, ctx=ctx)

    def handle(self, variable):
        """The variable's reference or handle, in this context."""
        return self.handle_in(self.ctx, variable)

    def handle_in(self, ctx, variable):
        if variable in ctx.handles:
            return ctx.handles[variable]
        outer = self.handle_in(ctx.parent, variable)
        saved, self.ctx = self.ctx, ctx
        if outer.is_ref and ctx.kind == 'loop':
            pivot, ctx.pivot = ctx.pivot, None
            inner = self.add('RefEnter', [outer.ref], {'T': type_(outer.dtype), 'frame_name': text(ctx.frame),
                                                       'is_constant': bool_(True), 'parallel_iterations': int_(ctx.parallel)},
                             [(outer.dtype, outer.dims)])[0]
            ctx.pivot = pivot
        elif outer.is_ref and ctx.kind == 'cond' and self.chance(0.7):
            inner = self.add('RefSwitch', [outer.ref, ctx.predicate], {'T': type_(outer.dtype)},
                             [(outer.dtype, outer.dims)] * 2)[ctx.branch]
        elif outer.is_ref:
            inner = outer
        else:
            inner = getattr(self, 'bring_' + ctx.kind)(ctx, outer)
        inner.is_ref, inner.alias = outer.is_ref, outer.alias
        self.ctx = saved
        ctx.handles[variable] = inner
        return inner

    # ---- contexts ----

    def enter(self, kind, nodes, variables):
        self.ctx = Context(kind, self.ctx, nodes, variables)
        return self.ctx

    def leave(self):
        """The context that ends, and [(variable, is_write)] of what it touched."""
        ctx = self.ctx
        self.ctx = ctx.parent
        return ctx, [(v, any(w for _, w in all_touches)) for v, all_touches in ctx.touched.items()]

    def touchers(self, ctx):
        """Nodes of the context that touched anything."""
        return list(dict.fromkeys(name for touches in ctx.touched.values() for name, _ in touches))

    def allowed(self):
        """A random part of the variables that a context within this one may touch."""
        in_function = any(c.kind == 'function' for c in self.chain())
        return [v for v in self.ctx.variables if self.chance(0.6) and not (in_function and v.kind == 'ref')]

    def chain(self):
        ctx = self.ctx
        while ctx:
            yield ctx
            ctx = ctx.parent
