"""What right calls of the C API do: the objects they make, and the numbers that steps give."""
import ctypes

import numpy as np

from misuse_world import Several, Unknown, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, Edge, Expected, Problem, Thing, Variable, World


class Env:
    """What an edge's value depends on: variables and feeds; |instead| gives edges other values, to differentiate by them."""

    def __init__(self, state, feeds=None, instead=None):
        self.state, self.feeds, self.instead = state, feeds or {}, instead or {}

    def of(self, thing):
        if thing in self.instead:
            return self.instead[thing]
        if thing in self.feeds:
            return self.feeds[thing]
        return thing.value(self)


def unary(fn):
    return lambda world, call: combine(world, call, 1, fn)


def binary(fn):
    return lambda world, call: combine(world, call, 2, fn)


def combine(world, call, count, fn):
    things = [world.thing(a) for a in call.args[1:1 + count]]
    if any(t.value is None for t in things):
        return None
    return lambda env: fn(*gather([lambda t=t: env.of(t) for t in things]))


def gather(parts):
    """What all |parts| give; else all the errors of which the first to come is told."""
    results, early = [], []
    for part in parts:
        try:
            results.append(part())
        except Expected as error:
            early.append(error)
        except Several as error:
            early += error.errors
    if early:
        raise Several(early)
    return results


OPS = {'neg': unary(lambda a: -a), 'square': unary(lambda a: a * a), 'identity': unary(lambda a: a),
       'add_v2': binary(lambda a, b: a + b), 'sub': binary(lambda a, b: a - b), 'mul': binary(lambda a, b: a * b)}
NODES = {'Neg': lambda a: -a, 'Identity': lambda a: a, 'AddV2': lambda a, b: a + b, 'Mul': lambda a, b: a * b}


class Model(World):
    """|ops|: names of attributes by op."""

    def __init__(self, library, ops):
        super().__init__(library)
        self.ops = ops

    def __getattr__(self, name):
        if name.startswith('after_op_') and name.removeprefix('after_op_') in OPS:
            return lambda call, error, result, values: self.keep_edge(call, error, result, OPS[name.removeprefix('after_op_')](self, call))
        raise AttributeError(name)

    def keep_edge(self, call, error, result, value, **known):
        if error:
            return
        if not result.node:
            raise Problem('gives no edge, and says nothing')
        self.things[call.result] = Thing('edge', result, self.root_of(call).graph, value=value, **known)

    def keep_out(self, values, at, name, kind, graph, **known):
        real = ctypes.c_void_p.from_address(values[at].value).value
        if not real:
            raise Problem('succeeds, and gives nothing')
        self.things[name] = Thing(kind, real, graph, **known)

    # ---- graphs and scopes ----

    def after_graph_create(self, call, error, _, values):
        if not error:
            self.keep_out(values, 0, call.args[0].name, 'graph', None, state={}, sessions=0, variables=[], is_known=True)

    def after_scope_create(self, call, error, result, _):
        thing = Thing('scope', result, self.thing(call.args[0]), initialised=[])
        thing.root = thing
        self.things[call.result] = thing

    def after_scope_finish(self, call, error, *_):
        thing = self.thing(call.args[0])
        if thing is None:
            raise Expected(8, '')
        if thing.ended or thing.root is not thing:
            raise Expected(FAILED_PRECONDITION, 'weir_scope_finish')
        for other in self.things.values():
            other.ended = other.ended or other.root is thing
        if thing.failed:
            if not error:
                raise Problem('forgets the error of the scope')
            self.is_forgiven = True

    def derive(self, call, error, result):
        if not error:
            parent = self.thing(call.args[0])
            is_lifted = call.name == 'weir_scope_lift'
            self.things[call.result] = Thing('scope', result, parent.graph, root=parent.root, wrongs=[] if is_lifted else parent.wrongs)

    def after_scope_in(self, call, error, result, _):
        self.derive(call, error, result)

    after_scope_name = after_scope_at = after_scope_lift = after_scope_after = after_scope_in

    def after_graph_find_output(self, call, error, _, values):
        graph, text = self.thing(call.args[0]), call.args[1]
        name, _, index = text.partition(':')
        found = [t for t in self.things.values() if t.kind == 'edge' and t.graph is graph and not t.is_null and self.name(t) == name]
        if not found:
            if graph.is_known and not error:
                raise Problem('finds what nobody made')
            self.is_forgiven = bool(error)
            if error and name not in error[1]:
                raise Problem(f'says {error}, which does not name {name!r}')
            return
        if not (index or '0').isdigit() or int(index or 0) >= found[0].count:
            raise Expected(INVALID_ARGUMENT, name)
        if not error and Edge.from_address(values[2].value).node != found[0].real.node:
            raise Problem(f'finds another node than {name}')

    def name(self, thing):
        return self.c.weir_node_name(ctypes.c_void_p(thing.real.node if isinstance(thing.real, Edge) else thing.real)).decode()

    # ---- tensors ----

    def after_tensor_create_from(self, call, error, _, values):
        dtype, rank, dims, data, out = call.args
        if dtype != 1:
            raise Expected(INVALID_ARGUMENT, '')
        sizes = list(dims.items[:rank]) if dims else []
        if any(d < 0 for d in sizes):
            raise Expected(INVALID_ARGUMENT, '')
        if not error:
            value = np.array(data.items[:int(np.prod(sizes))], np.float32).reshape(sizes)
            self.keep_out(values, 4, out.name, 'tensor', None, value=value)

    def after_tensor_reshape(self, call, error, _, values):
        value, sizes = self.thing(call.args[0]).value, list(call.args[2].items[:call.args[1]] if call.args[2] else ())
        if any(d < 0 for d in sizes) or int(np.prod(sizes)) != value.size:
            raise Expected(INVALID_ARGUMENT, '')
        if not error:
            self.keep_out(values, 3, call.args[3].name, 'tensor', None, value=value.reshape(sizes))

    def after_tensor_slice(self, call, error, _, values):
        value, begin, end = self.thing(call.args[0]).value, call.args[1], call.args[2]
        if value.ndim == 0 or not 0 <= begin <= end <= value.shape[0]:
            raise Expected(INVALID_ARGUMENT, '')
        if not error:
            self.keep_out(values, 3, call.args[3].name, 'tensor', None, value=value[begin:end])

    # ---- nodes ----

    def after_const_float(self, call, error, result, _):
        value = np.float32(call.args[1])
        self.keep_edge(call, error, result, lambda env: value, is_constant=True)

    def after_const_floats(self, call, error, result, _):
        _, rank, dims, values = call.args
        sizes = list(dims.items[:rank]) if dims else []
        value = np.array(values.items[:int(np.prod(sizes))], np.float32).reshape(sizes)
        self.keep_edge(call, error, result, lambda env: value, is_constant=True)

    def after_const(self, call, error, result, _):
        value = self.thing(call.args[1]).value
        self.keep_edge(call, error, result, lambda env: value, is_constant=True)

    def after_op_placeholder_v2(self, call, error, result, _):
        def missing(env):
            raise Expected(INVALID_ARGUMENT, 'must feed')
        self.keep_edge(call, error, result, missing, is_placeholder=True)

    def after_variable(self, call, error, result, _):
        initial = self.thing(call.args[2])
        if error:
            return
        root = self.root_of(call)
        variable, graph = Variable(call.args[1]), root.graph

        def read(env):
            if variable not in env.state:
                raise Several([Expected(c, v.name) for c in (FAILED_PRECONDITION, NOT_FOUND) for v in graph.variables if v not in env.state])
            return env.state[variable]
        self.keep_edge(call, error, result, read, variable=variable)
        variable.initial, variable.name = initial, self.name(self.things[call.result]).removesuffix('/Read')
        root.initialised.append(variable)
        root.graph.variables.append(variable)
        if initial.value is None:
            root.graph.is_known = False

    def after_initializer(self, call, error, result, _):
        variables = list(self.root_of(call).initialised)
        is_known = all(v.initial.value for v in variables)

        def run(env):
            without = Env({v: value for v, value in env.state.items() if v not in variables}, env.feeds)
            try:
                made = {v: without.of(v.initial) for v in variables}
            except Several as early:  # one of what another is to begin with: in which order is open
                raise Unknown from early
            return lambda: env.state.update(made)
        self.keep_node(call, error, result, run if is_known else None)

    def keep_node(self, call, error, result, runs):
        if error:
            return
        if not result:
            raise Problem('gives no node, and says nothing')
        self.things[call.result] = Thing('node', result, self.root_of(call).graph, runs=runs)

    def after_variable_handle(self, call, error, result, _):
        thing = self.thing(call.args[0])
        if getattr(thing, 'variable', None):
            self.things[call.result] = Thing('edge', result, thing.graph, variable=thing.variable, is_handle=True, of=call.args[0].name)

    def after_op_assign_add_variable_op(self, call, error, result, _):
        handle, value = self.thing(call.args[1]), self.thing(call.args[2])
        variable, graph = handle.variable, handle.graph

        def read(env):
            if variable not in env.state:
                raise Several([Expected(c, v.name) for c in (FAILED_PRECONDITION, NOT_FOUND) for v in graph.variables if v not in env.state])
            return env.state[variable]

        def run(env):
            after = sum(gather([lambda: read(env), lambda: env.of(value)]))
            return lambda: env.state.update({variable: after})
        self.keep_node(call, error, result, run if value.value else None)

    def after_group(self, call, error, result, _):
        runs = [self.thing(n).runs for n in call.args[2].items]

        def run(env):
            parts = gather([lambda r=r: r(env) for r in runs])
            return lambda: [p() for p in parts]
        self.keep_node(call, error, result, run if all(runs) else None)

    def after_scope_node(self, call, error, result, _):
        op, inputs = call.args[1], [self.thing(i) for i in call.args[2].items]
        self.keep_node(call, error, result, None)
        if not error:
            fn = NODES.get(op)
            value = (lambda env: fn(*gather([lambda i=i: env.of(i) for i in inputs]))) if fn and all(i.value for i in inputs) else None
            self.things[call.result + '.0'] = Thing('edge', Edge(result, 0), self.root_of(call).graph, value=value)

    def after_gradients(self, call, error, _, values):
        _, ys, _, xs, _, grads, out = call.args
        if error:
            return
        ys, xs = [self.thing(y) for y in ys.items], [self.thing(x) for x in xs.items]
        weights = [self.thing(g) for g in grads.items] if grads else [None] * len(ys)
        for i, x in enumerate(xs):
            edge = Edge.from_address(values[6].value + i * ctypes.sizeof(Edge))
            made = Edge(edge.node, edge.index)
            self.things[f'{out.name}.{i}'] = Thing('edge', made, self.thing(call.args[0]).graph, value=self.derivative(ys, x, weights), is_gradient=True)

    def derivative(self, ys, x, weights):
        if not x.value or not all(y.value for y in ys) or any(w is not None and not w.value for w in weights):
            return None

        def value(env):
            try:
                at = np.asarray(env.of(x), np.float64)
                weighs = [1.0 if w is None else env.of(w) for w in weights]
                for y in ys:
                    env.of(y)
            except (Expected, Several) as early:  # it may do without
                raise Unknown from early
            total = lambda v: sum(np.sum(w * env_with(env, x, v).of(y)) for y, w in zip(ys, weighs))
            out, step = np.zeros(at.shape), 1e-5
            for i in np.ndindex(at.shape):
                moved = np.array(at)
                moved[i] += step
                other = np.array(at)
                other[i] -= step
                out[i] = (total(moved) - total(other)) / (2 * step)
            return out
        return value

    # ---- sessions ----

    def after_session_create(self, call, error, _, values):
        if not error:
            graph = self.thing(call.args[0])
            self.keep_out(values, 2, call.args[2].name, 'session', graph)
            graph.sessions += 1

    def after_session_destroy(self, call, error, *_):
        thing = self.thing(call.args[0])
        if thing is None:
            return
        thing.ended = True
        thing.graph.sessions -= 1
        if thing.graph.sessions == 0:
            thing.graph.state.clear()

    def expect_step(self, session, spec):
        """Values of the fetches, and the updates to make."""
        feeds = {self.thing(e): self.thing(t).value for e, t in spec.feeds}
        env = Env(session.graph.state, feeds)
        parts = [lambda t=t: self.thing(t).runs(env) for t in spec.targets] + [lambda f=f: env.of(self.thing(f)) for f in spec.fetches]
        results = gather(parts)
        return results[len(spec.targets):], results[:len(spec.targets)]

    def after_session_run(self, call, error, _, values):
        self.step(self.thing(call.args[0]), call.args[1], error, values[2], call)

    def after_session_run_with(self, call, error, _, values):
        self.step(self.thing(call.args[0]), call.args[1], error, values[3], call)

    def step(self, session, spec, error, results, call):
        wanted, updates = self.expect_step(session, spec)
        if error:
            return
        for i, want in enumerate(wanted):
            at = ctypes.c_void_p.from_address(results.value + 8 * i)
            self.check_tensor(at.value, want)
            self.c.weir_tensor_release(at)
        for update in updates:
            update()

    def check_tensor(self, real, want):
        if not real:
            raise Problem('succeeds without a result')
        tensor = ctypes.c_void_p(real)
        data = ctypes.string_at(self.c.weir_tensor_data(tensor), self.c.weir_tensor_byte_size(tensor))
        got = np.frombuffer(data, np.float32)
        if got.size != np.size(want) or not np.allclose(got, np.ravel(want), 1e-2, 1e-2, equal_nan=True):
            raise Problem(f'gives {got}, not {np.ravel(want)}')

    def after_session_run_target(self, call, error, *_):
        session, node = self.thing(call.args[0]), self.thing(call.args[1])
        update = node.runs(Env(session.graph.state))
        if not error:
            update()

    def after_session_fetch_float(self, call, error, _, values):
        want = self.thing(call.args[1])
        want = Env(self.thing(call.args[0]).graph.state).of(want)
        if np.size(want) != 1:
            raise Expected(INVALID_ARGUMENT, '')
        if not error and not np.isclose(ctypes.c_float.from_address(values[2].value).value, float(want), 1e-2, 1e-2, equal_nan=True):
            raise Problem(f'gives {ctypes.c_float.from_address(values[2].value).value}, not {want}')

    def after_callable_create(self, call, error, _, values):
        if not error:
            session = self.thing(call.args[0])
            self.keep_out(values, 2, call.args[2].name, 'callable', session.graph, session=session, spec=call.args[1])

    def after_callable_run(self, call, error, _, values):
        thing = self.thing(call.args[0])
        if thing.session.ended:
            raise Expected(FAILED_PRECONDITION, '')
        given = call.args[1].items if call.args[1] else ()
        if len(given) < len(thing.spec.feeds):
            raise Expected(INVALID_ARGUMENT, 'weir_callable_run')
        feeds = tuple((e, t) for (e, _), t in zip(thing.spec.feeds, given))
        self.step(thing.session, thing.spec._replace(feeds=feeds), error, values[2], call)

    def after_callable_destroy(self, call, *_):
        if self.thing(call.args[0]):
            self.thing(call.args[0]).ended = True

    # ---- checkpoints and training ----

    def unset(self, graph):
        return [v.name for v in graph.variables if v not in graph.state]

    def after_checkpoint_save(self, call, error, *_):
        graph = self.thing(call.args[0]).graph
        unset = self.unset(graph)
        if not graph.variables and graph.is_known:
            raise Expected(INVALID_ARGUMENT, 'no variables')
        if not graph.is_known:  # a variable that was refused may have left a part of itself
            self.is_forgiven = True
        elif unset:
            raise Expected(FAILED_PRECONDITION, unset[0] if len(unset) == 1 else '')
        if unset and not error:
            raise Problem(f'saves without {unset}')
        if not error:
            self.latest = call.args[1]
            self.saved[call.args[1]] = {v.name: graph.state[v] for v in graph.variables}

    def after_checkpoint_restore(self, call, error, *_):
        graph, saved = self.thing(call.args[0]).graph, self.saved.get(call.args[1])
        names = [v.name for v in graph.variables]
        if saved is None:
            raise Expected(NOT_FOUND, call.args[1])
        fits = all(n in saved for n in names)
        if not fits:
            raise Expected(NOT_FOUND, '')
        if not graph.is_known:
            self.is_forgiven = True
        if any(np.shape(saved[v.name]) != np.shape(Env(graph.state).of(v.initial)) for v in graph.variables if v.initial.value):
            raise Expected(INVALID_ARGUMENT, '')
        if not error:
            graph.state.update({v: saved[v.name] for v in graph.variables})

    def after_latest_checkpoint(self, call, error, _, values):
        if error:
            return
        at = ctypes.c_void_p.from_address(values[1].value)
        got = ctypes.string_at(at.value).decode() if at.value else None
        if got != self.latest:
            raise Problem(f'the latest checkpoint is {got}, not {self.latest}')
        if at.value:
            self.c.weir_buffer_free(at)

    def after_fit_with(self, call, error, *_):
        session, step, loss = (self.thing(a) for a in call.args[:3])
        steps = dict(call.args[3].fields)['max_steps']
        for _ in range(steps):
            env = Env(session.graph.state)
            if np.size(env.of(loss)) != 1:
                raise Expected(INVALID_ARGUMENT, '')
            update = step.runs(env)
            if error:
                return
            update()


def env_with(env, thing, value):
    return Env(env.state, env.feeds, {**env.instead, thing: value})
