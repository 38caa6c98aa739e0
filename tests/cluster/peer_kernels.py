"""Steps that are long, endless, impossible, or wait for what never comes: drawn by rule, built by hand."""
from peer_lies import BOOL, DOUBLE, FLOAT, INT32, INT64, STRING, Graph

# Sizes are small, or beyond any machine: what lies between, a machine has or has not.
SMALL = 1 << 20
DEPTHS = [3, 1000, 20000, 10 ** 9]


def draw_size(chance):
    return int(2 ** chance.uniform(0, 20)) if chance.random() < 0.5 else int(2 ** chance.uniform(40, 62))


class Step:
    """A graph, what to feed and what to run. "x" is a float, "n" a size: nothing that they are in is known before the step."""

    def __init__(self, chance, world):
        self.chance, self.world = chance, world
        self.graph = Graph()
        self.graph.placeholder('x')
        self.graph.placeholder('n', INT64)
        self.graph.const('zero', 0, INT32)
        self.graph.const('zero_long', 0, INT64)
        self.graph.const('one_long', 1, INT64)
        self.graph.node('dims', 'ExpandDims', ['n', 'zero'], T=(INT64,), Tdim=(INT32,))
        self.graph.node('vector', 'ExpandDims', ['x', 'zero'], T=(FLOAT,), Tdim=(INT32,))
        self.x, self.n = 1.5, draw_size(chance)
        self.kind = chance.choices(list(KERNELS), [WEIGHTS.get(kind, 1) for kind in KERNELS])[0]
        if self.kind == 'long' and not world.take_long():
            self.kind = 'never'
        targets = KERNELS[self.kind](self)
        self.targets = targets if isinstance(targets, list) else [targets]
        self.text = f'{self.kind}, n = {self.n}, x = {self.x}'


def fill(step):
    return step.graph.node('y', 'Fill', ['dims', 'x'], T=(FLOAT,), index_type=(INT64,))


def span(step):
    return step.graph.node('y', 'Range', ['zero_long', 'n', 'one_long'], Tidx=(INT64,))


def tile(step):
    return step.graph.node('y', 'Tile', ['vector', 'dims'], T=(FLOAT,), Tmultiples=(INT64,))


def broadcast(step):
    return step.graph.node('y', 'BroadcastTo', ['vector', 'dims'], T=(FLOAT,), Tidx=(INT64,))


def draws(step):
    return step.graph.node('y', 'RandomUniform', ['dims'], T=(INT64,), dtype=(FLOAT,))


def text(step):
    """Numbers as text of any width, some of them or many."""
    width = step.chance.choice([20, 10 ** 6]) if step.chance.random() < 0.5 else (1 << 31) - 1
    count = step.chance.choice([1, 8, 64, 4096])
    if width * count > 1 << 28 and width * count < 1 << 36:
        count = 1 if width < 1 << 28 else 64
    if width * count < 1 << 36:
        step.world.grant(width * count)
    step.graph.const('count', [count], INT32)
    step.graph.node('many', 'Fill', ['count', 'x'], T=(FLOAT,), index_type=(INT32,))
    step.graph.node('y', 'AsString', ['many'], T=(FLOAT,), width=width)
    step.n = 1
    return 'y'


def joined(step):
    step.graph.node('wide', 'AsString', ['x'], T=(FLOAT,), width=step.chance.choice([1 << 10, 1 << 24]))
    step.graph.const('count', [step.chance.choice([1, 1 << 17])], INT32)
    step.graph.node('many', 'Fill', ['count', 'wide'], T=(STRING,), index_type=(INT32,))
    return step.graph.node('y', 'StringJoin', ['many', 'wide'], N=2)


def read(step):
    """Files of any kind, by any op that opens one."""
    texts, targets = [], []
    for i in range(3):
        path, op = step.chance.choice(step.chance.choice([step.world.files, step.world.devices])), step.chance.choice(list(READERS))
        # A line may be as long as there is memory.
        if (op == 'WriteFile' and path not in step.world.writable_files) or (op == 'TextLineReaderV2' and path.endswith('sparse')):
            op = 'ReadFile'
        step.graph.const(f'path{i}', path.encode(), STRING)
        targets.append(READERS[op](step.graph, op, f'path{i}', str(i)))
        texts.append(f'{op} of {path}')
    step.kind = ', '.join(texts)
    return targets


def read_whole(graph, op, path, i):
    return graph.node('y' + i, op, [path])


def write(graph, op, path, i):
    return graph.node('y' + i, op, [path, path])


def restore(graph, op, path, i):
    graph.const('names' + i, [b'a'], STRING)
    graph.const('slices' + i, [b''], STRING)
    return graph.node('y' + i, op, [path, 'names' + i, 'slices' + i], dtypes=[FLOAT])


def read_lines(graph, op, path, i):
    graph.node('reader' + i, op)
    graph.node('queue' + i, 'FIFOQueueV2', component_types=[STRING], capacity=4)
    graph.node('put' + i, 'QueueEnqueueV2', ['queue' + i, path], Tcomponents=[STRING])
    return graph.node('y' + i, 'ReaderReadV2', ['reader' + i, 'queue' + i, '^put' + i])


def never(step):
    step.graph.node('queue', 'FIFOQueueV2', component_types=[FLOAT], shared_name='of nobody')
    return step.graph.node('y', 'QueueDequeueV2', ['queue'], component_types=[FLOAT])


def long(step):
    """One kernel that computes for minutes."""
    step.n = 9000
    step.world.grant(2 * 8 * step.n ** 2)
    step.graph.node('both', 'Pack', ['n', 'n'], T=(INT64,), N=2, axis=0)
    step.graph.node('value', 'Cast', ['x'], SrcT=(FLOAT,), DstT=(DOUBLE,))
    step.graph.node('matrix', 'Fill', ['both', 'value'], T=(DOUBLE,), index_type=(INT64,))
    return step.graph.node('y', 'MatMul', ['matrix', 'matrix'], T=(DOUBLE,))


def calls(step):
    """Functions that call each other, themselves, or nobody; the last of a chain may fail."""
    chance, graph = step.chance, step.graph
    names = [f'F{i}' for i in range(chance.choice([1, 1, 2, 3]))]
    step.x = float(chance.choice(DEPTHS))
    step.world.grant(2 << 30)  # calls are as deep as there is memory
    end = graph.function('End')
    graph.node('l', 'Log', ['a'], into=end, T=(FLOAT,))
    graph.node('c', 'CheckNumerics', ['l:y:0'], into=end, T=(FLOAT,), message='the end')
    end.ret['r'] = chance.choice(['c:output:0', 'l:y:0'])
    for i, name in enumerate(names):
        function, called = graph.function(name), chance.choice(names)
        if chance.random() < 0.5:  # for ever
            graph.node('again', called, ['a'], into=function)
            function.ret['r'] = 'again:r:0'
            continue
        further = graph.function(f'Further{i}')
        graph.const('one', 1.0, FLOAT, into=further)
        graph.node('less', 'Sub', ['a', 'one:output:0'], into=further, T=(FLOAT,))
        graph.node('rest', called, ['less:z:0'], into=further)
        further.ret['r'] = 'rest:r:0'
        graph.const('none', 0.0, FLOAT, into=function)
        graph.node('is_end', 'LessEqual', ['a', 'none:output:0'], into=function, T=(FLOAT,))
        graph.node('if', 'If', ['is_end:z:0', 'a'], into=function, Tcond=(BOOL,), Tin=[FLOAT], Tout=[FLOAT],
                   then_branch='@End', else_branch=f'@Further{i}')
        function.ret['r'] = 'if:output:0'
    return graph.node('y', names[0], ['x'])


def table(graph, keys, key_type, chance):
    """An op that puts |keys| into a table."""
    if chance.random() < 0.5:
        return graph.node('y', 'Unique', [keys], T=(key_type,), out_idx=(INT32,))
    graph.node('table', 'MutableHashTableV2', key_dtype=(key_type,), value_dtype=(key_type,))
    return graph.node('y', 'LookupTableInsertV2', ['table', keys, keys], Tin=(key_type,), Tout=(key_type,))


READERS = {'ReadFile': read_whole, 'MatchingFiles': read_whole, 'RestoreV2': restore, 'WriteFile': write, 'TextLineReaderV2': read_lines}
KERNELS = {'fill': fill, 'range': span, 'tile': tile, 'broadcast': broadcast, 'draws': draws, 'text': text, 'joined': joined,
           'read': read, 'never': never, 'long': long, 'calls': calls}
WEIGHTS = {'read': 3, 'long': 2, 'calls': 2, 'text': 2}
