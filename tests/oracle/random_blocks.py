"""Conditionals, loops and calls of random programs, of nodes and of functions, each around a random block of actions."""
from random_actions import ACTIONS, T, action
from random_builder import NOTHING, Value
from random_graph import BOOL, FLOAT, INT32, RESOURCE, Function, Node, bool_, func, funcs, int_, shapes, text, type_, types

DEEPEST = 3
MOST = 60  # nodes, after which nothing more is begun


def fill(b, count):
    """A random block of |count| actions in the present context."""
    names, weights = b.choices
    for name in b.rng.choices(names, weights, k=count):
        if b.count < MOST:
            ACTIONS[name][1](b)


def draw_types(b):
    """Types and shapes of what a block gives."""
    found = [b.find() for _ in range(b.below(2) + 1)]
    return [(v.dtype, v.dims) for v in found if v is not None] or [(FLOAT, ())]


def finish_block(b, wanted):
    """Values of the wanted types; the first comes after all that the context touched."""
    values = [b.want(dtype, dims) for dtype, dims in wanted]
    touchers = b.touchers(b.ctx)
    out = []
    for i, v in enumerate(values):
        o = b.add('Identity', [v.ref], T(v.dtype), [(v.dtype, v.dims)], b.passes(v), controls=touchers if i == 0 else ())[0]
        o.alias = v.alias
        out.append(o)
    return out


# ---- of nodes ----

@action(5)
def cond(b):
    p = b.find(BOOL, ())
    if p is None or b.ctx.depth >= DEEPEST:
        return
    outer, variables, wanted = b.ctx, b.allowed(), draw_types(b)
    entries = [(v, True) for v in variables]
    controls = {}
    b.order(entries, b.mask_of_inputs([p.ref]), controls)
    pair = b.add('Switch', [p.ref, p.ref], T(BOOL), [(BOOL, ())] * 2, b.reads(p), controls)
    results, touched = [], {}
    for branch in (0, 1):
        ctx = b.enter('cond', outer.nodes, variables)
        ctx.predicate, ctx.branch, ctx.entry = p.ref, branch, pair[0].node()
        ctx.pivot = b.add('Identity', [pair[branch].ref], T(BOOL), [(BOOL, ())])[0].node()
        fill(b, b.below(5))
        results.append(finish_block(b, wanted))
        for v, is_write in b.leave()[1]:
            touched[v] = touched.get(v, False) or is_write
    for i, pair_of in enumerate(zip(*results)):
        touches = list(touched.items()) if i == 0 else b.passes(*pair_of)
        inputs = [v.ref for v in pair_of]
        dtype, dims = wanted[i]
        saved, b.is_strict = b.is_strict, False  # ordered by what it merges: an edge from within would be dead
        out = b.add('Merge', inputs, T(dtype, N=int_(2)), [(dtype, dims), (INT32, ())], touches)[0]
        b.is_strict = saved
        out.alias = pair_of[0].alias | pair_of[1].alias
        b.ctx.values.append(out)


@action(4)
def loop(b):
    """i and others go round while i < n."""
    if b.ctx.depth >= DEEPEST:
        return
    outer, variables = b.ctx, b.allowed()
    rounds = b.const(INT32, value=b.below(4)) if b.chance(0.7) else b.want(INT32, ())
    limit = b.add('Minimum', [rounds.ref, b.const(INT32, value=4).ref], T(INT32), [(INT32, ())], b.reads(rounds))[0]
    starts = [b.const(INT32, value=0)] + [v for v in (b.find() for _ in range(b.below(3))) if v is not None]
    controls = {}
    b.order([(v, True) for v in variables], b.mask_of_inputs([starts[0].ref]), controls)
    ctx = b.enter('loop', outer.nodes, variables)
    ctx.frame, ctx.parallel = b.name('frame'), b.pick(1, 2, 10)
    nexts = [b.name('next') for _ in starts]
    merges, insides, exits = [], [], []
    attrs = {'frame_name': text(ctx.frame), 'is_constant': bool_(False), 'parallel_iterations': int_(ctx.parallel)}
    for i, start in enumerate(starts):
        enter = b.add('Enter', [start.ref], T(start.dtype, **attrs), [(start.dtype, start.dims)], (), controls if i == 0 else ())[0]
        ctx.entry = ctx.entry or enter.node()
        name = b.name('merge')
        b.append(name, 'Merge', [enter.ref, nexts[i]], T(start.dtype, N=int_(2)), b.before[enter.node()])
        merges.append(Value(name, start.dtype, start.dims, start.alias, ctx=ctx))
    less = b.add('Less', [merges[0].ref, b.bring(limit).ref], T(INT32), [(BOOL, ())])[0]
    going = b.add('LoopCond', [less.ref], {}, [(BOOL, ())])[0]
    for m in merges:
        pair = b.add('Switch', [m.ref, going.ref], T(m.dtype), [(m.dtype, m.dims)] * 2)
        exits.append(pair[0])
        inside = b.add('Identity', [pair[1].ref], T(m.dtype), [(m.dtype, m.dims)])[0]
        inside.alias = m.alias
        insides.append(inside)
    ctx.pivot = insides[0].node()
    ctx.values += insides
    fill(b, b.below(5) + 1)
    finish_loop(b, ctx, starts, insides, exits, nexts)


def finish_loop(b, ctx, starts, insides, exits, nexts):
    results = [b.want(v.dtype, v.dims) for v in insides[1:]]
    one = b.const(INT32, value=1)
    counted = b.add('AddV2', [insides[0].ref, one.ref], T(INT32), [(INT32, ())], controls=b.touchers(ctx))[0]
    alias = frozenset()
    for v, name in zip([counted, *results], nexts):
        before = b.mask_of_inputs([v.ref])
        tie = ['^' + ctx.pivot] if b.is_invariant(before) else []
        b.append(name, 'NextIteration', [v.ref, *tie], T(v.dtype), before | b.before[ctx.pivot])
        alias |= v.alias
    mask = b.mask_of(nexts)
    _, touched = b.leave()
    for i, (start, out) in enumerate(zip(starts, exits)):
        name = b.name('exit')
        b.append(name, 'Exit', [out.ref], T(start.dtype), b.before[out.node()] | mask)
        value = Value(name, start.dtype, start.dims, start.alias | alias, ctx=b.ctx)
        b.ctx.values.append(value)
        if i == 0:
            for v, is_write in touched:
                b.ctx.touched.setdefault(v, []).append((name, is_write))


# ---- of functions ----

def start_function(b, variables):
    return b.enter('function', [], [v for v in variables if v.kind != 'ref'])


def end_function(b, ctx, results, args):
    """Adds the function of the context that ended, with |args| ([(name, value)]) as its arguments; its name."""
    name = b.name('fn') + f'_{b.tag}'
    own = {a for a, _ in args}
    nodes = [Node(n.name, n.op, [in_function(b, ctx, own, i) for i in n.inputs], n.attrs) for n in ctx.nodes]
    outs = [(f'out{i}', v.dtype, in_function(b, ctx, own, v.ref)) for i, v in enumerate(results)]
    controls = list(dict.fromkeys([*b.touchers(ctx), *(n.name for n in ctx.nodes if n.op == 'Assert')]))
    b.program.functions.append(Function(name, [(a, v.dtype) for a, v in args], outs, controls, nodes))
    return name


def in_function(b, ctx, args, name):
    """An input as a function spells it."""
    if name[0] == '^' or name in args:
        return name
    node, _, index = name.partition(':')
    op = next(n for n in ctx.nodes if n.name == node)
    return f'{node}:' + b.output_name(op, int(index or 0))


def call_touches(b, all_contexts, args):
    """What a call touches: what its functions do, and the variables it is handed aliases of."""
    touched = {}
    for ctx in all_contexts:
        for v, touches in ctx.touched.items():
            touched[v] = touched.get(v, False) or any(w for _, w in touches)
    for _, value in args:
        for v in value.alias:
            touched.setdefault(v, False)
    return sorted(touched.items(), key=repr)


def stateful(all_contexts):
    return any(ctx.touched or any(n.op in ('Assert', 'TensorArrayV3', 'StackV2') or n.op.startswith('Stateful') or n.op in ('If', 'While', 'Case')
                                  for n in ctx.nodes) for ctx in all_contexts)


def can_call(b):
    return b.ctx.depth < DEEPEST


def add_call(b, op, inputs, attrs, wanted, touches, alias):
    outs = b.add(op, inputs, attrs, wanted, touches)
    for o in outs:
        o.alias = alias
        b.lowered.add(o.node())
    b.ctx.values += outs


@action(4)
def call(b):
    if not can_call(b):
        return
    wanted, variables = draw_types(b), b.allowed()
    ctx = start_function(b, variables)
    fill(b, b.below(6))
    results = finish_block(b, wanted)
    b.leave()
    name = end_function(b, ctx, results, ctx.args)
    tin, tout = types(*(v.dtype for _, v in ctx.args)), types(*(d for d, _ in wanted))
    inputs, touches = [v.ref for _, v in ctx.args], call_touches(b, [ctx], ctx.args)
    alias = NOTHING.union(*(v.alias for _, v in ctx.args))
    if b.chance(0.3):
        add_call(b, name, inputs, {}, wanted, touches, alias)
    else:
        op = 'StatefulPartitionedCall' if stateful([ctx]) or b.chance(0.3) else 'PartitionedCall'
        add_call(b, op, inputs, {'Tin': tin, 'Tout': tout, 'f': func(name)}, wanted, touches, alias)


def lowered(b):
    return {'_lower_using_switch_merge': bool_(True)} if b.chance(0.5) else {}


def lowered_loop(b):
    """Only where no variable of a loop can be dead when it starts: one that goes round unchanged is no variable in Weir, in
    TensorFlow it is dead in the first round and missing in the next, and a loop within may wait for it."""
    return lowered(b) if 'switch' not in b.choices[0] else {}


@action(4)
def branch(b):
    """If or Case."""
    if not can_call(b):
        return
    is_case = b.chance(0.3)
    p = b.find(INT32 if is_case else BOOL, ())
    if p is None:
        return
    wanted, variables = draw_types(b), b.allowed()
    ctxs, results = [], []
    for _ in range(2 + (is_case and b.below(2))):
        ctx = start_function(b, variables)
        if ctxs:  # the same arguments, and more
            ctx.args = [(a, v) for a, v in ctxs[-1].args]
            for key, value in ctxs[-1].captured.items():
                ctx.captured[key] = Value(value.ref, value.dtype, value.dims, value.alias, ctx=ctx)
            for v, value in ctxs[-1].handles.items():
                ctx.handles[v] = Value(value.ref, value.dtype, value.dims, value.alias, ctx=ctx)
        fill(b, b.below(5))
        results.append(finish_block(b, wanted))
        b.leave()
        ctxs.append(ctx)
    args = ctxs[-1].args
    names = [end_function(b, ctx, r, args) for ctx, r in zip(ctxs, results)]
    tin, tout = types(*(v.dtype for _, v in args)), types(*(d for d, _ in wanted))
    less = '' if stateful(ctxs) or b.chance(0.3) else 'Stateless'
    attrs = {'Tin': tin, 'Tout': tout, 'output_shapes': shapes(*(None for _ in wanted)), **lowered(b)}
    inputs, touches = [p.ref] + [v.ref for _, v in args], call_touches(b, ctxs, [('', p), *args])
    alias = NOTHING.union(*(v.alias for _, v in args))
    if is_case:
        add_call(b, less + 'Case', inputs, {**attrs, 'branches': funcs(*names)}, wanted, touches, alias)
    else:
        attrs.update(Tcond=type_(BOOL), then_branch=func(names[1]), else_branch=func(names[0]))
        add_call(b, less + 'If', inputs, attrs, wanted, touches, alias)


@action(3)
def loop_of_functions(b):
    if not can_call(b):
        return
    starts = [b.const(INT32, value=0)] + [v for v in (b.find() for _ in range(b.below(2) + 1)) if v is not None and v.dtype != RESOURCE]
    rounds = b.below(4)
    ctx = start_function(b, b.allowed())
    insides = [b.bring_function(ctx, v) for v in starts]
    for v, start in zip(insides, starts):
        v.alias = start.alias
    ctx.values += insides
    fill(b, b.below(5))
    results = finish_block(b, [(v.dtype, v.dims) for v in starts[1:]] or [(INT32, ())])
    counted = b.add('AddV2', [insides[0].ref, b.const(INT32, value=1).ref], T(INT32), [(INT32, ())], controls=b.touchers(ctx))[0]
    rest = [Value(name, v.dtype, v.dims, v.alias, ctx=ctx) for name, v in ctx.args[len(starts):]]
    b.leave()
    args = ctx.args
    body = end_function(b, ctx, [counted, *results[:len(starts) - 1], *rest], args)
    test = start_function(b, [])
    test.args = args
    self_i = Value(args[0][0], INT32, (), ctx=test)
    less = b.add('Less', [self_i.ref, b.const(INT32, value=rounds).ref], T(INT32), [(BOOL, ())])[0]
    b.leave()
    cond_name = end_function(b, test, [less], args)
    wanted = [(v.dtype, v.dims) for _, v in args]
    attrs = {'T': types(*(d for d, _ in wanted)), 'cond': func(cond_name), 'body': func(body),
             'output_shapes': shapes(*(None for _ in wanted)), 'parallel_iterations': int_(b.pick(1, 10)), **lowered_loop(b)}
    alias = NOTHING.union(*(v.alias for _, v in args))
    op = 'While' if stateful([ctx]) or b.chance(0.3) else 'StatelessWhile'
    inputs = [v.ref for _, v in args]
    outs = b.add(op, inputs, attrs, wanted, call_touches(b, [ctx], args))
    for o in outs:
        o.alias = alias
        b.lowered.add(o.node())
    b.ctx.values += outs[:len(starts)]
