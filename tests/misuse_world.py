"""Calls of the C API as data, what must come of each, and how to make it.

A Call names a function of the headers, its arguments and what its result is called. A World makes calls one after the other and
knows of each object of which graph it is, whether it has ended, and what its value is. What is wrong with a call follows from
that by rule: a pointer or edge that is missing and not optional, an object of another graph, one that has ended, a name that
nothing bears. Such a call must be refused: by a status, by the error of its scope, or by an abort, in words that say which call or
argument was wrong. A right call must succeed, with the right numbers.
"""
import collections
import ctypes
import re


from api_headers import FUNCTIONS, NOTHING, Edge, Gradient, Pair, Rate, Words, c_type

Call = collections.namedtuple('Call', 'name args result')
# Arguments; None is NULL, numbers and strings are themselves.
Of = collections.namedtuple('Of', 'name')  # an object
At = collections.namedtuple('At', 'name index')  # an edge; no name: none
Out = collections.namedtuple('Out', 'name')  # room for an object, or without a name for anything
Some = collections.namedtuple('Some', 'kind items')  # an array of 'edge', 'node', 'float', 'int', 'int64', 'tensor' or 'text'
Spec = collections.namedtuple('Spec', 'feeds fetches targets')  # feeds: pairs of an edge and a tensor
Attr = collections.namedtuple('Attr', 'name kind value')
Attrs = collections.namedtuple('Attrs', 'items')
Struct = collections.namedtuple('Struct', 'name fields')  # of options
WORDS = {t.__name__: t for t in (Call, Of, At, Out, Some, Spec, Attr, Attrs, Struct)}

FLOAT = 1
INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 3, 5, 9

# What a header says may be NULL. Besides: what ends an object, and what only hands one on.
OPTIONAL = {
    ('weir_session_create', 'options'), ('weir_session_run_with', 'options'), ('weir_session_run_with', 'out_metadata'),
    ('weir_session_run_with', 'out_metadata_size'), ('weir_gradients', 'grad_ys'), ('weir_gradients_sparse', 'grad_ys'),
    ('weir_graph_import_text', 'prefix'), ('weir_graph_import_def', 'prefix'), ('weir_saver_save', 'out_path'),
    ('weir_saver_save_with', 'out_path'), ('weir_saver_save_with', 'options'), ('weir_saver_resume', 'out_path'), ('weir_saver_resume', 'out_refused'),
    ('weir_saver_keeps_best', 'out_higher_is_better'), ('weir_best_checkpoint', 'out_metric'),
    ('weir_fit_with', 'out_result'), ('weir_group', 'name'), ('weir_callable_run', 'feeds'), ('weir_tensor_create_strings', 'sizes'),
    ('weir_tensor_string', 'out_size'), ('weir_dtype_from_name', 'size'), ('weir_session_describe_step', 'options'),
}
ENDS = re.compile('_(destroy|release|retain|free|close|finish)$')
MISSING = ('NULL', 'no edge', 'no node', 'no tensor', 'without a node', 'without a value', 'is missing')


class Problem(Exception):
    """What a call did that it must not."""


class Expected(Exception):
    """An error that a right call meets: it comes too early."""

    def __init__(self, code, word):
        super().__init__(word)
        self.code, self.word = code, word


class Several(Exception):
    """Errors of which a right call meets any."""

    def __init__(self, errors):
        super().__init__()
        self.errors = errors


class Unknown(Exception):
    """What a call gives depends on what the model does not follow."""


class Thing:
    """What the model knows of an object: |graph| it is of, |root| scope, whether it |ended|, |value| of an edge as a function of
    its graph's state and what is fed."""

    def __init__(self, kind, real, graph=None, **known):
        self.kind, self.real, self.graph = kind, real, graph
        self.root = self.value = self.session = None
        self.ended = self.failed = False
        self.wrongs = []  # of a scope: with what its nodes wait for
        self.count = 1  # outputs
        self.__dict__.update(known)

    @property
    def is_null(self):
        return not (self.real.node if isinstance(self.real, Edge) else self.real)


class Variable:
    def __init__(self, name):
        self.name = name


class StepSpec(ctypes.Structure):
    _fields_ = [('feeds', ctypes.c_void_p), ('feed_count', ctypes.c_int), ('fetches', ctypes.c_void_p), ('fetch_count', ctypes.c_int),
                ('targets', ctypes.c_void_p), ('target_count', ctypes.c_int)]


class Feed(ctypes.Structure):
    _fields_ = [('edge', Edge), ('tensor', ctypes.c_void_p)]


class AttrValue(ctypes.Union):
    _fields_ = [('i', ctypes.c_int64), ('f', ctypes.c_float), ('b', ctypes.c_bool), ('s', ctypes.c_char_p), ('list', Pair)]


class AttrArg(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('kind', ctypes.c_int), ('value', AttrValue)]


ATTR_KINDS = {'int': (0, 'i'), 'float': (1, 'f'), 'bool': (2, 'b'), 'type': (3, 'i'), 'text': (4, 's')}


class SessionOptions(ctypes.Structure):
    _fields_ = [('target', ctypes.c_char_p), ('filters', ctypes.c_char_p), ('threads', ctypes.c_int), ('rest', ctypes.c_uint64 * 13)]


class Lease(ctypes.Structure):
    _fields_ = [('is_held', Edge), ('release', ctypes.c_void_p), ('seconds', ctypes.c_float), ('election', ctypes.c_void_p)]


class FitOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('max_steps', ctypes.c_int64), ('init', ctypes.c_void_p), ('start', ctypes.c_void_p),
                ('data', ctypes.c_void_p), ('inputs', ctypes.c_void_p), ('feed', ctypes.c_void_p), ('arg', ctypes.c_void_p), ('directory', ctypes.c_char_p),
                ('events', ctypes.c_void_p), ('summaries', Edge), ('summary_every', ctypes.c_int), ('saver', ctypes.c_void_p),
                ('save_every', ctypes.c_int), ('save_every_seconds', ctypes.c_double), ('no_resume', ctypes.c_bool),
                ('evaluate', ctypes.c_void_p), ('evaluate_every', ctypes.c_int), ('patience', ctypes.c_int),
                ('min_delta', ctypes.c_float), ('higher_is_better', ctypes.c_bool), ('on_step', ctypes.c_void_p),
                ('coordinator', ctypes.c_void_p), ('uninitialized', Edge), ('is_worker', ctypes.c_bool), ('lease', Lease),
                ('chief_start', ctypes.c_void_p), ('lost_seconds', ctypes.c_double),
                ('global_step', Edge), ('step_seconds', ctypes.c_double), ('is_quiet', ctypes.c_bool), ('item_name', ctypes.c_char_p),
                ('log_every', ctypes.c_int), ('no_signals', ctypes.c_bool), ('grace_seconds', ctypes.c_double),
                ('save_in_foreground', ctypes.c_bool)]


STRUCTS = {'session': SessionOptions, 'fit': FitOptions}
ARRAYS = {'edge': Edge, 'node': ctypes.c_void_p, 'tensor': ctypes.c_void_p, 'float': ctypes.c_float, 'int': ctypes.c_int,
          'int64': ctypes.c_int64, 'text': ctypes.c_char_p}


class World:
    def __init__(self, library):
        self.c = library
        self.things, self.kept = {}, []
        library.weir_status_message.restype = library.weir_node_name.restype = ctypes.c_char_p
        library.weir_scope_status.restype = library.weir_tensor_data.restype = ctypes.c_void_p
        library.weir_tensor_byte_size.restype = ctypes.c_size_t
        self.latest = None  # the checkpoint that is
        self.saved = {}  # prefix -> {name of a variable: value}

    # ---- arguments ----

    def thing(self, argument):
        """The object or edge that is meant; None: nothing."""
        name = getattr(argument, 'name', None)
        return self.things.get(name) if isinstance(argument, (Of, At)) else None

    def is_missing(self, argument):
        if argument is None:
            return True
        if isinstance(argument, (Of, At)):
            thing = self.thing(argument)
            return thing is None or thing.is_null
        return False

    def edge(self, at):
        thing = self.thing(at)
        return Edge(thing.real.node, at.index) if thing else Edge()

    def keep(self, value):
        self.kept.append(value)
        return ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)

    def array(self, some):
        items = [self.edge(i) if some.kind == 'edge' else (self.thing(i).real if self.thing(i) else None)
                 if some.kind in ('node', 'tensor') else i.encode() if isinstance(i, str) else i for i in some.items]
        made = (ARRAYS[some.kind] * max(1, len(items)))(*items)
        self.kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p)

    def spec(self, spec):
        feeds = (Feed * max(1, len(spec.feeds)))()
        for i, (edge, tensor) in enumerate(spec.feeds):
            feeds[i] = Feed(self.edge(edge), self.thing(tensor).real if self.thing(tensor) else None)
        self.kept.append(feeds)
        return self.keep(StepSpec(ctypes.cast(feeds, ctypes.c_void_p), len(spec.feeds), self.array(Some('edge', spec.fetches)),
                                  len(spec.fetches), self.array(Some('node', spec.targets)), len(spec.targets)))

    def attrs(self, attrs):
        made = (AttrArg * max(1, len(attrs.items)))()
        for at, (name, kind, value) in zip(made, attrs.items):
            number, member = ATTR_KINDS[kind]
            at.name, at.kind = name.encode() if name is not None else None, number
            setattr(at.value, member, value.encode() if isinstance(value, str) else value)
        self.kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p)

    def struct(self, struct):
        made = STRUCTS[struct.name]()
        for key, value in struct.fields:
            thing = self.thing(value)
            setattr(made, key, thing.real if thing else value.encode() if isinstance(value, str) else value)
        return self.keep(made)

    def to_c(self, kind, argument):
        """|argument| as a parameter of type |kind| takes it."""
        wanted = c_type(kind)
        if wanted is Edge:
            return self.edge(argument)
        if wanted is Rate:
            return Rate(argument, Edge()) if isinstance(argument, float) else Rate(0, self.edge(argument))
        if wanted is Gradient:
            return Gradient(self.edge(argument), Edge(), Edge())
        if wanted is Pair:
            return Pair() if argument is None else Pair(self.array(argument).value, len(argument.items), True)
        if wanted is not ctypes.c_void_p:
            return argument
        return self.pointer(argument)

    def pointer(self, argument):
        if isinstance(argument, Of):
            return ctypes.c_void_p(self.thing(argument).real) if self.thing(argument) else None
        if isinstance(argument, str):
            return NOTHING if argument == 'callback' else ctypes.cast(ctypes.c_char_p(argument.encode()), ctypes.c_void_p)
        if isinstance(argument, Out):
            memory = ctypes.create_string_buffer(4096)
            self.kept.append(memory)
            return ctypes.cast(memory, ctypes.c_void_p)
        makers = {Some: self.array, Spec: self.spec, Attrs: self.attrs, Struct: self.struct}
        return makers[type(argument)](argument) if argument is not None else None

    # ---- what is wrong with a call ----

    def owner(self, call):
        """The graph that a call is about: of its scope, session or what was made of those."""
        for (kind, _), argument in zip(FUNCTIONS[call.name][1], call.args):
            thing = self.thing(argument) if isinstance(argument, Of) else None
            if thing and not thing.is_null and thing.kind in ('scope', 'session', 'graph', 'callable', 'partial'):
                return thing.graph if thing.kind != 'graph' else thing
        return None

    def wrongs(self, call):
        """Words by which a refusal may say what is wrong, for each argument that is."""
        _, parameters = FUNCTIONS[call.name]
        owner, found = self.owner(call), []
        for i, ((kind, name), argument) in enumerate(zip(parameters, call.args)):
            beside = [call.args[k] for k in (i - 1, i + 1) if 0 <= k < len(parameters) and parameters[k][1].endswith(('count', 'rank'))]
            is_list = kind.count('*') and not kind.startswith('weir_tensor_t*') and not kind.endswith('scope_t*')
            is_empty = not self.fetches(call) if name == 'results' else argument is None and is_list and 0 in beside
            if not is_empty:  # nothing needs no room
                found += self.wrongs_of(call.name, kind, name, argument, owner)
        if call.name.startswith('weir_op_') and self.thing(call.args[0]) and not found:
            found += self.thing(call.args[0]).wrongs
        if call.name == 'weir_scope_node':
            found += self.wrong_attrs(call.args[1], call.args[4])
        return found

    def fetches(self, call):
        for argument in call.args:
            spec = argument if isinstance(argument, Spec) else getattr(self.thing(argument), 'spec', None)
            if spec:
                return spec.fetches
        return True

    def wrongs_of(self, function, kind, name, argument, owner):
        is_pointer = c_type(kind) in (ctypes.c_void_p, Edge)  # a gradient may be none
        if is_pointer and self.is_missing(argument):
            is_fine = (function, name) in OPTIONAL or ENDS.search(function) or name in ('user', 'arg', 'options')
            return [] if is_fine else [(function, name, *MISSING)]
        if isinstance(argument, (Of, At)):
            return [] if self.is_missing(argument) else self.wrong_thing(argument, owner, function)
        if isinstance(argument, Some) and argument.kind in ('edge', 'node', 'tensor'):
            return [w for i in argument.items for w in self.wrong_item(function, name, i, owner)]
        if isinstance(argument, Spec):
            used = 1 if function == 'weir_callable_create' else 2  # of a feed; that ignores tensors
            pieces = [p for feed in argument.feeds for p in feed[:used]] + list(argument.fetches) + list(argument.targets)
            return [w for p in pieces for w in self.wrong_item(function, name, p, owner)]
        if isinstance(argument, Struct):
            return [w for _, v in argument.fields if isinstance(v, (Of, At)) for w in self.wrong_item(function, name, v, owner)]
        if isinstance(argument, int) and argument < 0 and ('count' in name or name == 'rank'):
            return [(function, name, 'negative', str(argument))]
        return []

    def wrong_item(self, function, name, item, owner):
        if self.is_missing(item):
            return [(function, name, *MISSING)]
        return self.wrong_thing(item, owner, function)

    def wrong_thing(self, argument, owner, function):
        thing = self.thing(argument)
        if thing.ended:
            return [(function, 'finished', 'destroyed')]
        name = (self.c.weir_node_name(ctypes.c_void_p(thing.real.node)).decode() if isinstance(thing.real, Edge) else
                self.c.weir_node_name(ctypes.c_void_p(thing.real)).decode() if thing.kind == 'node' else function)
        if owner is not None and thing.graph is not None and thing.graph is not owner:
            return [(name, 'another graph')]
        # Collections may hold nodes, with any number beside them.
        if isinstance(argument, At) and function != 'weir_scope_collect' and not 0 <= argument.index < thing.count:
            return [(name, str(argument.index))]
        return []

    def wrong_attrs(self, op, attrs):
        if not isinstance(attrs, Attrs):
            return []
        known = self.ops.get(op)
        if known is None:
            return [(str(op),)]
        return [(str(a.name), 'NULL', 'weir_scope_node') for a in attrs.items if a.name not in known]

    # ---- calls ----

    def make(self, call):
        """Makes |call| and judges it; raises a Problem."""
        if self.is_taken(call):
            return
        result_kind, parameters = FUNCTIONS[call.name]
        wrongs = self.wrongs(call)
        root = self.root_of(call)
        was_failed = root is not None and root.failed
        function = getattr(self.c, call.name)
        function.restype = c_type(result_kind)
        function.argtypes = [c_type(kind) for kind, _ in parameters]
        values = [self.to_c(kind, argument) for (kind, _), argument in zip(parameters, call.args)]
        result = function(*values)
        error = self.error_of(call, result_kind, result, root)
        self.judge(call, wrongs, was_failed, error, result, values)

    def may_abort(self, call):
        """Whether a refusal may end the program: not where there is a scope to tell."""
        things = [self.thing(a) for a in call.args if isinstance(a, Of)]
        return self.root_of(call) is None or any(t is not None and t.ended for t in things)

    def is_taken(self, call):
        """Whether what has ended has left its address to something else: nobody could tell the two apart."""
        for argument in call.args:
            thing = self.thing(argument) if isinstance(argument, Of) else None
            if thing and thing.ended and any(t.real == thing.real and not t.ended for t in self.things.values()
                                             if not isinstance(t.real, Edge)):
                return True
        return False

    def root_of(self, call):
        for argument in call.args:
            thing = self.thing(argument) if isinstance(argument, Of) else None
            if thing and thing.kind == 'scope' and not thing.ended and not thing.is_null:
                return thing.root
        return None

    def error_of(self, call, result_kind, result, root):
        """(code, message) of the status that is returned, else of the scope; None."""
        if result_kind == 'weir_status_t*':
            status = result
        else:
            status = self.c.weir_scope_status(ctypes.c_void_p(root.real)) if root and not root.ended else None
        if not status:
            return None
        pointer = ctypes.c_void_p(status)
        error = self.c.weir_status_code(pointer), self.c.weir_status_message(pointer).decode(errors='replace')
        if result_kind == 'weir_status_t*':
            self.c.weir_status_destroy(pointer)
        return error

    def judge(self, call, wrongs, was_failed, error, result, values):
        handler = getattr(self, 'after_' + call.name.removeprefix('weir_'), None)
        is_told = FUNCTIONS[call.name][0] == 'weir_status_t*' or self.root_of(call) is not None
        root = self.root_of(call)
        if was_failed and call.name != 'weir_scope_finish':
            if FUNCTIONS[call.name][0] == 'weir_status_t*' and not error:
                raise Problem('says nothing of the error of its scope')
            self.keep_nothing(call, result, root)
            return
        if root and (handler is None or call.name == 'weir_variable' and error):
            root.graph.is_known = False  # it may have made variables, or a part of one
        if wrongs:
            self.judge_wrong(call, wrongs, error, is_told)
            if call.name == 'weir_scope_after' and not error and result:
                self.things[call.result] = Thing('scope', result, root.graph, root=root, wrongs=wrongs)
                return
            if root and FUNCTIONS[call.name][0] != 'weir_status_t*':
                root.failed = root.failed or (error is not None and call.name != 'weir_scope_status')
            self.keep_nothing(call, result, root)
            return
        scope = self.thing(call.args[0]) if call.args and isinstance(call.args[0], Of) else None
        if error and scope and scope.kind == 'scope' and scope.wrongs and root:  # with what its nodes wait for
            root.failed = FUNCTIONS[call.name][0] != 'weir_status_t*' or root.failed
            self.keep_nothing(call, result, root)
            return
        if handler is None:  # any function: what is right for it is not known
            if error and root:
                root.failed = True
            if error and not error[1]:
                raise Problem('fails without a message')
            self.keep_nothing(call, result, root)
            return
        try:
            handler(call, error, result, values)
        except Expected as early:
            self.judge_early([early], error)
        except Several as early:
            self.judge_early(early.errors, error)
        except Unknown:
            pass
        else:
            if error is not None and not getattr(self, 'is_forgiven', False):
                raise Problem(f'fails: {error}')
        self.is_forgiven = False

    def judge_early(self, errors, error):
        words = ' or '.join(f'{e.code} with {e.word!r}' for e in errors)
        if error is None:
            raise Problem(f'succeeds, but {errors[0].word!r} is not ready: {words}')
        if not any(error[0] == e.code and e.word in error[1] for e in errors):
            raise Problem(f'says {error}, not {words}')

    def judge_wrong(self, call, wrongs, error, is_told):
        if error is None:
            if call.name == 'weir_scope_after' and not self.is_missing(call.args[1]):
                return  # told of by the first node that would wait
            if is_told:
                raise Problem(f'says nothing, but {wrongs[0][0]!r} is wrong: {wrongs[0][1:]}')
            return  # it could only abort; what returns is a harmless answer, as of release(NULL)
        is_followed = hasattr(self, 'after_' + call.name.removeprefix('weir_'))  # else something else may be wrong as well
        if not error[1] or is_followed and not any(word in error[1] for words in wrongs for word in words):
            raise Problem(f'says {error}, which names none of {wrongs}')

    def keep_nothing(self, call, result, root):
        """The result of a call that failed or that the model does not follow: kept only where it is nothing, or a scope."""
        if call.result is None or root is None:
            return
        kind = FUNCTIONS[call.name][0]
        if kind == 'weir_edge_t':
            self.things[call.result] = Thing('edge', result, root.graph)
        elif kind == 'weir_scope_t*':
            self.things[call.result] = Thing('scope', result, root.graph, root=root)
        elif kind == 'weir_node_t*':
            self.things[call.result] = Thing('node', result, root.graph, runs=None)
