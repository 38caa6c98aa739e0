"""Draws calls of the C API: right ones by what there is, then some of their arguments made wrong by rule."""
import ctypes

from api_headers import FUNCTIONS, Edge, Gradient, Pair, Rate, Words, c_type
from misuse_world import At, Attr, Attrs, Call, Of, Out, Some, Spec, Struct

# Steps of nodes by name: inputs, and values of attributes that are right for them.
NODES = {'Neg': (1, {}), 'Identity': (1, {}), 'AddV2': (2, {}), 'Mul': (2, {}),
         'Cast': (1, {'DstT': ('type', 1), 'Truncate': ('bool', False)}), 'Softplus': (1, {'T': ('type', 1)}),
         'ZerosLike': (1, {'T': ('type', 1)}), 'Shape': (1, {'out_type': ('type', 9)}), 'Size': (1, {'out_type': ('type', 3)}),
         'LeakyRelu': (1, {'alpha': ('float', 0.5)}), 'CheckNumerics': (1, {'message': ('text', 'here')}),
         'Print': (1, {'first_n': ('int', 1)}), 'Elu': (1, {})}
LONE = [n for n in NODES if n not in ('Print',)]
LEFT_OUT = {'weir_op_abort', 'weir_gradient_unique', 'weir_loss_total'}  # the last two may hand on what they are given


def is_followed(name):
    """Whether any function |name| can be called by the kinds of its parameters."""
    _, parameters = FUNCTIONS[name]
    kinds = [kind.replace('const ', '') for kind, _ in parameters]
    if name in LEFT_OUT or 'weir_scope_t*' not in kinds or name.startswith('weir_plugin'):
        return False
    if not any(k in ('weir_edge_t', 'weir_gradient_t') or k.replace(' ', '') == 'weir_edge_t*' for k in kinds):
        return False
    opaque = ('cell_t', 'attention_t*', 'saver', 'status', 'rule', 'void', 'weir_node', 'moving_average_t', 'optimizer_t', 'queue_runner',
              'feature', 'update', 'variable_gradient', 'gradient_t*')
    return all(c_type(k) is not Words and not any(o in k for o in opaque) for k in kinds)


class Draw:
    def __init__(self, rng, model):
        self.rng, self.model, self.made = rng, model, 0
        self.actions = [(3, self.new_scope), (2, self.new_session), (4, self.constant), (2, self.vector), (2, self.tensor), (1, self.view),
                        (1, self.const_tensor), (6, self.operation), (2, self.variable), (2, self.initializer), (2, self.update), (1, self.group),
                        (4, self.node), (2, self.gradients), (1, self.derived), (1, self.placeholder), (6, self.run), (3, self.target),
                        (2, self.fetch), (1, self.callable), (2, self.call), (2, self.save), (1, self.restore), (2, self.latest), (4, self.fit),
                        (1, self.finish), (0.5, self.end_session), (1, self.find), (4, self.any_function), (0.5, self.end_callable)]
        self.any = sorted(n for n in FUNCTIONS if is_followed(n) and not hasattr(model, 'after_' + n.removeprefix('weir_')))

    def name(self, letter):
        self.made += 1
        return f'{letter}{self.made}'

    def start(self):
        """Two graphs, each with a scope and a session."""
        for _ in range(2):
            graph = self.name('g')
            yield Call('weir_graph_create', (Out(graph),), None)
            yield Call('weir_scope_create', (Of(graph),), self.name('s'))
            yield self.open_session(graph)

    def next(self):
        """The next call: right by what there is, or made wrong."""
        weights, makers = zip(*self.actions)
        while True:
            call = self.rng.choices(makers, weights)[0]()
            if call is None:
                continue
            if self.rng.random() < 0.3:
                call = self.spoil(call) or call
            return call

    def end(self):
        """Whatever was wrong before, what there is gives its numbers."""
        for graph in self.of('graph'):
            session, edges = self.pick('session', graph=graph), self.edges(graph)
            for edge in self.rng.sample(edges, min(3, len(edges))) if session else ():
                yield Call('weir_session_run', (session, Spec((), (edge,), ()), Out(None)), None)
        yield from filter(None, [self.latest()])

    # ---- what there is ----

    def of(self, kind, **known):
        """Names of the objects that are in use."""
        return [n for n, t in self.model.things.items() if t.kind == kind and not t.ended and not t.is_null and
                all(getattr(t, k, None) == v for k, v in known.items())]

    def pick(self, kind, graph=None, **known):
        if graph is not None:
            known['graph'] = self.model.things[graph]
        names = self.of(kind, **known)
        return Of(self.rng.choice(names)) if names else None

    def scope(self):
        scopes = [n for n in self.of('scope') if not self.model.things[n].root.failed or self.rng.random() < 0.05]
        return Of(self.rng.choice(scopes)) if scopes else None

    def graph_of(self, argument):
        graph = self.model.thing(argument).graph
        return next(n for n, t in self.model.things.items() if t is graph)

    def edges(self, graph, is_gradient=None, **known):
        """Edges of |graph| whose value is known; gradients themselves are only for fetching."""
        graph, known = self.model.things[graph], {'is_gradient': is_gradient, **known}
        return [At(n, 0) for n, t in self.model.things.items() if t.kind == 'edge' and t.graph is graph and t.value and not t.is_null and
                all(getattr(t, k, None) == v for k, v in known.items())]

    def edge(self, scope):
        edges = self.edges(self.graph_of(scope))
        return self.rng.choice(edges) if edges else None

    def dims(self, at):
        sizes = (ctypes.c_int64 * 8)()
        rank = self.model.c.weir_edge_dims(self.model.edge(at), sizes, 8)
        return rank, sizes[:max(rank, 0)]

    # ---- right calls ----

    def new_scope(self):
        graphs = [g for g in self.of('graph') if not any(not self.model.things[s].root.failed for s in self.of(
            'scope', graph=self.model.things[g]))]
        return Call('weir_scope_create', (Of(self.rng.choice(graphs)),), self.name('s')) if graphs else None

    def open_session(self, graph):
        return Call('weir_session_create', (Of(graph), Struct('session', (('threads', 1),)), Out(self.name('x'))), None)

    def new_session(self):
        few = [g for g in self.of('graph') if self.model.things[g].sessions < 2]
        return self.open_session(self.rng.choice(few)) if few else None

    def number(self):
        return self.rng.choice((-2.0, -0.5, 0.0, 1.0, 1.5, 3.0))

    def constant(self):
        return self.scope() and Call('weir_const_float', (self.scope(), self.number()), self.name('e'))

    def vector(self):
        return self.scope() and Call('weir_const_floats', (self.scope(), 1, Some('int64', (2,)),
                                                           Some('float', (self.number(), self.number()))), self.name('e'))

    def tensor(self):
        numbers = Some('float', (self.number(), self.number()))
        rank, dims = self.rng.choice(((0, Some('int64', ())), (1, Some('int64', (2,))), (2, Some('int64', (1, 2)))))
        return Call('weir_tensor_create_from', (1, rank, dims, numbers, Out(self.name('t'))), None)

    def view(self):
        tensor = self.pick('tensor')
        if tensor is None:
            return None
        if self.rng.random() < 0.5:
            begin, end = self.rng.choice(((0, 1), (0, 2), (1, 2), (1, 1), (2, 1), (0, 3), (-1, 1)))
            return Call('weir_tensor_slice', (tensor, begin, end, Out(self.name('t'))), None)
        rank, dims = self.rng.choice(((1, (2,)), (2, (2, 1)), (0, ()), (1, (3,)), (2, (-1, 2))))
        return Call('weir_tensor_reshape', (tensor, rank, Some('int64', dims), Out(self.name('t'))), None)

    def const_tensor(self):
        tensor = self.pick('tensor')
        return tensor and self.scope() and Call('weir_const', (self.scope(), tensor), self.name('e'))

    def operation(self):
        scope = self.scope()
        name = self.rng.choice(('neg', 'square', 'add_v2', 'sub', 'mul'))
        inputs = [scope and self.edge(scope) for _ in range(2 if name in ('add_v2', 'sub', 'mul') else 1)]
        return Call('weir_op_' + name, (scope, *inputs), self.name('e')) if all(inputs) else None

    def variable(self):
        scope = self.scope()
        known = scope and [e for e in self.edges(self.graph_of(scope), variable=None, is_placeholder=None)]
        return Call('weir_variable', (scope, self.name('v'), self.rng.choice(known)), self.name('e')) if known else None

    def initializer(self):
        return self.scope() and Call('weir_initializer', (self.scope(),), self.name('n'))

    def update(self):
        scope = self.scope()
        if scope is None:
            return None
        handles = [n for n in self.of('edge', is_handle=True) if self.model.things[n].graph is self.model.thing(scope).graph]
        if not handles:
            variables = [n for n, t in self.model.things.items() if t.kind == 'edge' and getattr(t, 'variable', None)]
            return Call('weir_variable_handle', (At(self.rng.choice(variables), 0),), self.name('h')) if variables else None
        handle = At(self.rng.choice(handles), 0)
        values = [e for e in self.edges(self.graph_of(scope)) if self.dims(e) == self.dims(At(self.model.things[handle.name].of, 0))]
        value = values and self.rng.choice(values)
        return value and Call('weir_op_assign_add_variable_op', (scope, handle, value), self.name('n'))

    def nodes(self, graph):
        return [Of(n) for n, t in self.model.things.items() if t.kind == 'node' and t.graph is self.model.things[graph] and t.runs]

    def group(self):
        scope = self.scope()
        nodes = scope and self.nodes(self.graph_of(scope))
        chosen = self.rng.sample(nodes, min(len(nodes), 2)) if nodes else ()
        return Call('weir_group', (scope, self.name('all'), Some('node', tuple(chosen)), len(chosen)), self.name('n')) if chosen else None

    def node(self):
        """A node of any op, with some of its attributes."""
        scope, op = self.scope(), self.rng.choice(LONE)
        count, attrs = NODES[op]
        inputs = [scope and self.edge(scope) for _ in range(count)]
        if not all(inputs):
            return None
        given = tuple(Attr(k, *v) for k, v in attrs.items() if k in ('DstT', 'message') or self.rng.random() < 0.8)
        return Call('weir_scope_node', (scope, op, Some('edge', tuple(inputs)), count, Attrs(given), len(given)), self.name('n'))

    def gradients(self):
        scope = self.scope()
        ys = [scope and self.edge(scope) for _ in range(self.rng.randrange(1, 3))]
        if not all(ys):
            return None
        xs = [self.edge(scope) for _ in range(self.rng.randrange(1, 3))]
        return Call('weir_gradients', (scope, Some('edge', tuple(ys)), len(ys), Some('edge', tuple(xs)), len(xs), None,
                                       Out(self.name('d'))), None)

    def derived(self):
        scope = self.scope()
        if scope is None:
            return None
        how = self.rng.choice(('in', 'name', 'at', 'lift', 'after'))
        if how == 'after':
            nodes = self.nodes(self.graph_of(scope))[:1]
            return Call('weir_scope_after', (scope, Some('node', tuple(nodes)), len(nodes)), self.name('s')) if nodes else None
        return Call('weir_scope_' + how, (scope,) if how == 'lift' else (scope, self.name('p')), self.name('s'))

    def placeholder(self):
        return self.scope() and Call('weir_op_placeholder_v2', (self.scope(), 1, Some('int64', (2,))), self.name('e'))

    def spec(self, session, targets=True):
        graph = self.graph_of(session)
        edges, nodes = self.edges(graph) + self.edges(graph, is_gradient=True), self.nodes(graph) if targets and self.rng.random() < 0.2 else []
        fetches = self.rng.sample(edges, min(len(edges), self.rng.randrange(0 if nodes else 1, 3)))
        # What is fed and written, or fetched and written, in one step is in no order.
        if nodes:
            fetches = [f for f in fetches if self.is_fixed(self.model.thing(f))]
        fits = [t for t in self.of('tensor') if self.model.things[t].value.shape == (2,)]
        feeds = []
        for edge in self.edges(graph, is_placeholder=True):
            if fits and self.rng.random() < 0.9:
                feeds.append((edge, Of(self.rng.choice(fits))))
        return Spec(tuple(feeds), tuple(fetches), tuple(nodes[:1]))

    def is_fixed(self, thing):
        return getattr(thing, 'is_constant', False)

    def run(self):
        session = self.pick('session')
        spec = session and self.spec(session)
        if not spec or not (spec.fetches or spec.targets):
            return None
        if self.rng.random() < 0.3:
            return Call('weir_session_run_with', (session, spec, None, Out(None), None, None), None)
        return Call('weir_session_run', (session, spec, Out(None)), None)

    def target(self):
        session = self.pick('session')
        nodes = session and self.nodes(self.graph_of(session))
        return Call('weir_session_run_target', (session, self.rng.choice(nodes)), None) if nodes else None

    def fetch(self):
        session = self.pick('session')
        edges = session and self.edges(self.graph_of(session))
        return Call('weir_session_fetch_float', (session, self.rng.choice(edges), Out(None)), None) if edges else None

    def callable(self):
        session = self.pick('session')
        spec = session and self.spec(session, targets=False)
        return Call('weir_callable_create', (session, spec, Out(self.name('c'))), None) if spec and spec.fetches else None

    def call(self):
        callable_ = self.pick('callable')
        if callable_ is None:
            return None
        feeds = self.model.thing(callable_).spec.feeds
        tensors = tuple(t for _, t in feeds)
        if any(self.model.thing(t) is None for t in tensors):
            return None
        return Call('weir_callable_run', (callable_, Some('tensor', tensors) if feeds else None, Out(None)), None)

    def end_callable(self):
        callable_ = self.pick('callable')
        return callable_ and Call('weir_callable_destroy', (callable_,), None)

    def save(self):
        session = self.pick('session')
        return session and Call('weir_checkpoint_save', (session, './' + self.name('ckpt')), None)

    def restore(self):
        session = self.pick('session')
        prefixes = sorted(self.model.saved) + ['./nosuch']
        return session and Call('weir_checkpoint_restore', (session, self.rng.choice(prefixes)), None)

    def latest(self):
        return Call('weir_latest_checkpoint', ('.', Out(None)), None)

    def fit(self):
        session = self.pick('session')
        nodes, edges = (self.nodes(self.graph_of(session)), self.edges(self.graph_of(session))) if session else ([], [])
        fixed = [e for e in edges if self.is_fixed(self.model.thing(e)) and self.dims(e)[0] == 0]
        if not nodes or not fixed:
            return None
        options = Struct('fit', (('max_steps', self.rng.randrange(1, 4)), ('is_quiet', True), ('no_signals', True)))
        return Call('weir_fit_with', (session, self.rng.choice(nodes), self.rng.choice(fixed), options, Out(None)), None)

    def finish(self):
        roots = [n for n in self.of('scope') if self.model.things[n].root is self.model.things[n]]
        failed = [n for n in roots if self.model.things[n].failed]
        roots = failed or (roots if self.rng.random() < 0.2 else [])
        return Call('weir_scope_finish', (Of(self.rng.choice(roots)),), None) if roots else None

    def end_session(self):
        session = self.pick('session')
        return session and Call('weir_session_destroy', (session,), None)

    def find(self):
        graph = self.pick('graph')
        edges = self.edges(graph.name)
        name = self.model.name(self.model.thing(self.rng.choice(edges))) if edges else 'nothing'
        return Call('weir_graph_find_output', (graph, name + self.rng.choice(('', ':0', ':1')), Out(None)), None)

    def any_function(self):
        """Any function that builds, by the kinds of its parameters. What is right for it is not known; what is wrong is."""
        scope = self.scope()
        edges = scope and self.edges(self.graph_of(scope))
        if not edges:
            return None
        name, args = self.rng.choice(self.any), []
        for kind, parameter in FUNCTIONS[name][1]:
            args.append(self.argument(kind.replace('const', '').replace(' ', ''), parameter, scope, edges))
        call = Call(name, tuple(args), None)
        return self.spoil(call) or call

    def argument(self, kind, name, scope, edges):
        wanted = c_type(kind)
        if kind == 'weir_scope_t*':
            return scope
        if wanted in (Edge, Gradient):
            return self.rng.choice(edges)
        if wanted is Rate:
            return 0.5
        if wanted is Pair:
            lists = {'weir_tables_t': ('edge', (self.rng.choice(edges),)), 'weir_strings_t': ('text', (self.name('text'),)),
                     'weir_shapes_t': ('int64', ()), 'weir_types_t': ('int', (1,)), 'weir_floats_t': ('float', (0.5,))}
            return Some(*lists.get(kind, ('int64', (1,))))
        if kind == 'weir_edge_t*':
            return Out(None) if name.startswith('out') else Some('edge', (self.rng.choice(edges),))
        if kind == 'char*':
            return self.name('text')
        if kind.endswith('_fn_t'):
            return 'callback'
        return Out(None) if wanted is ctypes.c_void_p else 1 if wanted not in (ctypes.c_float, ctypes.c_double) else 0.5

    # ---- wrong calls ----

    def spoil(self, call):
        """|call| with one of its arguments wrong."""
        ways = [(i, way) for i, ((kind, name), argument) in enumerate(zip(FUNCTIONS[call.name][1], call.args))
                for way in self.ways(kind, name, argument, call)]
        if not ways:
            return None
        i, way = self.rng.choice(ways)
        wrong = way()
        return call._replace(args=call.args[:i] + (wrong,) + call.args[i + 1:])

    def ways(self, kind, name, argument, call):
        """Functions that give a wrong argument for a right one."""
        if isinstance(argument, At) and argument.name is not None:
            return [lambda: At(None, 0), lambda: self.foreign(argument), lambda: argument._replace(index=self.rng.choice((-1, 1, 7)))]
        # Without a scope or session a function can only abort, which ends the sequence.
        is_ending = name in ('scope', 'session', 'graph', 'callable') and self.rng.random() < 0.9
        is_ending = is_ending or isinstance(argument, Struct) and argument.name == 'fit'  # without a limit it goes on for ever
        ways = [lambda: None] if c_type(kind) is ctypes.c_void_p and argument is not None and not is_ending else []
        if isinstance(argument, Of) and self.model.thing(argument):
            ways += [lambda: self.foreign(argument)] if self.model.thing(argument).kind == 'node' else []
            ways += [lambda: self.ended(argument)] * 2 if call.name in ('weir_scope_finish', 'weir_session_destroy') else []
        if isinstance(argument, Some) and argument.kind in ('edge', 'node') and argument.items:
            ways += [lambda: self.with_item(argument)] * 3
        if isinstance(argument, Spec):
            ways += [lambda: self.wrong_spec(argument)] * 4
        if isinstance(argument, Attrs):
            ways += [lambda: self.wrong_attrs(argument)] * 4 if argument.items else []
        if isinstance(argument, str) and call.name in ('weir_scope_node', 'weir_graph_find_output') and c_type(kind) is ctypes.c_void_p:
            ways += [lambda: self.misspelt(argument)]
        if isinstance(argument, int) and ('count' in name or name == 'rank'):
            ways += [lambda: -1]
        return ways

    def foreign(self, argument):
        """The like of |argument| in another graph."""
        mine = self.model.thing(argument)
        if mine is None:
            return argument
        others = [n for n, t in self.model.things.items() if t.kind == mine.kind and t.graph is not mine.graph and not t.is_null and not t.ended]
        if not others:
            return At(None, 0) if isinstance(argument, At) else None
        return argument._replace(name=self.rng.choice(others))

    def ended(self, argument):
        names = [n for n, t in self.model.things.items() if t.kind == self.model.thing(argument).kind and t.ended and t.root in (None, t)]
        return Of(self.rng.choice(names)) if names else argument

    def with_item(self, some):
        i = self.rng.randrange(len(some.items))
        item = some.items[i]
        wrong = [self.foreign(item), At(None, 0) if some.kind == 'edge' else None]
        wrong += [item._replace(index=self.rng.choice((-1, 5)))] if isinstance(item, At) else []
        return some._replace(items=some.items[:i] + (self.rng.choice(wrong),) + some.items[i + 1:])

    def wrong_spec(self, spec):
        field = self.rng.choice([f for f in ('feeds', 'fetches', 'targets') if getattr(spec, f)] or ['fetches'])
        items = getattr(spec, field)
        if not items:
            return spec
        if field == 'feeds':
            (edge, tensor), *rest = items
            wrong = self.rng.choice(((self.foreign(edge), tensor), (At(None, 0), tensor), (edge, None)))
            return spec._replace(feeds=(wrong, *rest))
        return spec._replace(**{field: self.with_item(Some('edge' if field == 'fetches' else 'node', items)).items})

    def misspelt(self, text):
        if len(text) < 2:
            return text + 'x'
        i = self.rng.randrange(len(text) - 1)
        swapped = text[:i] + text[i + 1] + text[i] + text[i + 2:]
        return swapped if swapped != text else text + 'x'

    def wrong_attrs(self, attrs):
        i = self.rng.randrange(len(attrs.items))
        attr = attrs.items[i]
        others = sorted({n for names in self.model.ops.values() for n in names})
        name = self.rng.choice((self.misspelt(attr.name), self.misspelt(attr.name), self.rng.choice(others), None))
        return Attrs(attrs.items[:i] + (attr._replace(name=name),) + attrs.items[i + 1:])
