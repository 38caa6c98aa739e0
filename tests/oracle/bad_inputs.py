#!/usr/bin/env python3
"""What ops make of bad inputs, in Weir and in TensorFlow: good cases of the oracle with one thing changed by rule.

    bad_inputs.py [--probe FILE] [--seed N] [--count N] [--record FILE] [names...]

Of each op |count| changed cases are drawn (bad_draw.py) from a few small good ones; names are those of oracle.py. Both systems run
them, shape function and kernel apart, each in a process with limits on time and memory. Wanted are the same results or the same
codes, and messages that say what TensorFlow's say, with its numbers (messages.py). A crash or a hang of Weir's is a failure; what ends
TensorFlow is only run. MEANT says which differences there are for a reason; bad_inputs_open.txt has those of an op and a kind that are
not mended yet. --record keeps the cases that pass, for oracle.py --replay.
"""
import argparse
import ctypes
import os
import pickle
import random
import re
import resource
import select
import signal
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bad_draw
import oracle
import probe as weir_probe
import random_tensorflow
import record
from probe import REF, Result
from random_graph import Run
from values import OPAQUE, SATURATES

SEED = 20161102
BASES = 4  # good cases of an op that others are made of
MEMORY = 3 << 30  # more than a process has when it begins
LIMIT_S = 20  # for a case
M_PERTURB = -6  # of malloc.h
DRAW_S = 300  # for drawing all
WAITING = re.compile('Collective.*')  # for others, who are not there: tests/cluster asks them

# Differences that are meant, by op and by what was changed or is said of them.
MEANT = {
    ('.*', 'NOT_FOUND: Container localhost does not exist'),  # nor does the container of a probe's variables
    ('DebugGradientRefIdentity', 'Attempting to use uninitialized value node'),  # the fetch finds that, not the op
    ('Stateless.*V[23]|StatelessShuffle|StochasticCastToInt', 'counter must be a vector'),  # TensorFlow reads past it
    ('QuantizedMul', 'elements differ'),  # TensorFlow reads past an input that is broadcast
    ('EnsureShape', 'Shape must be rank -1 but'),  # TensorFlow's shape function takes an unknown shape for one of rank -1
    ('ImageProjectiveTransformV[23]', 'Invalid (interpolation|mode)'),  # TensorFlow logs that, and takes it as another
    ('.*', 'attribute (strides|ksize|rates|dilations): item . is 2147483647.*elements differ'),  # TensorFlow's ints overflow
    ('Dilation2D.*', 'Rate must be >= 0'),  # a rate below 0 means nothing; TensorFlow's loops go backwards
    ('(Avg|Max)Pool.*', 'ksize (must be positive|field must have non-negative)'),  # TensorFlow's loops then do nothing
    ('AvgPool(Grad)?', 'attribute strides: item 3.*Stride must be > 0'),  # TensorFlow does not look at the channels' stride
    ('MaxPoolGrad', 'explicit_paddings attribute must be empty'),  # nor at this in a gradient; that of the forward op is refused
    ('DepthwiseConv2dNativeBackprop(Filter|Input)', 'attribute dilations'),  # TensorFlow's kernels leave them out: no gradient of it
    ('AvgPoolGrad', "Size of out_backprop doesn't match computed"),  # TensorFlow writes past its output
    ('FractionalMaxPoolGrad', 'tensor_out_dup is not the same as tensor_out'),  # TensorFlow writes past its own
    ('BlockLSTMGrad(V2)?', '(dim_size|must be rank)'),  # TensorFlow reads past inputs that are too small, and others by wrong strides
    ('RaggedBincount', 'There must be as many weights'),  # TensorFlow reads past them
    ('RaggedTensorToTensor', 'row partitions are of .* values, but'),  # TensorFlow reads past the values
    ('RequantizePerChannel', 'input_min has incorrect size'),  # TensorFlow writes past its output, or leaves channels unwritten
    ('ParseSingleSequenceExample', '(not fully defined|must match the size of)'),  # TensorFlow reads past the shapes, or takes none for one
    ('ParseSequenceExample(V2)?', 'not fully defined'),  # here it takes none for one, too
    ('ResourceSparseApply.*', 'var and grad must match in all dimensions'),  # TensorFlow reads a part of a gradient that has more
    ('ParallelConcat', "shape's first dimension is .*but there are"),  # TensorFlow leaves rows unwritten
    ('_FusedMatMul', 'fused argument . must be a vector of'),  # TensorFlow reads a part of it, or past it
    ('AdjustHue', 'input 1: value nan'),  # which number a NaN becomes as an int is the processor's affair
    ('LRN(Grad)?', 'attribute (alpha|bias): is -1.0.*elements differ'),  # sums cancel out: rounding decides
    ('MatrixLogarithm', 'elements differ'),  # of singular matrices, which have none: rounding decides
    ('QuantizedResizeBilinear', 'elements differ.*qint32'),  # TensorFlow's NEON rounds otherwise than its portable code
    ('.*', 'Missing \\d+-th output from'),  # TensorFlow's kernel forgets one where there is nothing to compute
    ('UniformQuantizedConvolution.*', 'OOM when allocating'),  # TensorFlow writes out what is dilated or padded
    ('Slice', 'OOM .* shape\\[.*9223372036854775807'),  # TensorFlow's sum of begin and size overflows
    ('.*Conv.*', 'CPU implementations? .*dilat|does not support dilations'),  # Weir's kernels take dilations on CPUs, too
    ('Conv3D.*', 'must have the same number of channels|must match last dimension of input'),  # and groups of volumes
}
if not SATURATES:
    MEANT |= {('AdjustContrast|.*(Quantize|Requantiz).*', 'value nan.*elements differ')}
# What is said of both, but otherwise. First where TensorFlow's message is about something else than its input.
MEANT |= {
    ('.*', 'Rank cannot exceed kint32max'),  # Weir says which rank
    ('ConcatV2', 'Subshape end out of bounds'),  # TensorFlow's -axis overflows
    ('Dequantize', 'Axis must be less than input dimension.*2147483647'),  # and its axis + 1
    ('MatrixDiagV[23]', 'is -?214748364\\d:.*not consistent with lower_diag_index'),  # and its sizes
    ('Dilation2DBackprop.*', 'attribute rates: item . is 2147483647'),  # and its windows
    ('ExtractVolumePatches', 'attribute ksizes: item . is 2147483647'),
    ('SplitV', 'is 2147483647:.*Got: -'),  # and the sum of its sizes
    ('Transpose', 'is -?922337203685477580\\d:.*is missing from'),  # TensorFlow takes it as an int32
    ('UnsortedSegment(Max|Min|Prod|Sum)', 'input 2: value 0 is -?9223372036854775'),
    ('DenseBincount', 'is -9223372036854775808:.*kernel fails'),  # TensorFlow keeps it as an int32, which is not negative
    ('.*ScatterNd.*', 'Dimensions \\[0,1\\) of indices\\[shape=\\[\\]\\]'),  # TensorFlow reads a dimension that a scalar has not
    ('ResourceScatter.*', 'input 0: a scalar:.*is not in \\[0,'),
    ('LSTMBlockCell(Grad)?', 'a scalar:.*dim(_size|s)\\(0\\) != '),
    ('SetSize|Sparse.*', 'input 0: a scalar:.*indices and values rows'),
    ('RequantizationRangePerChannel', 'input 1: (its first row|a scalar):'),
    ('Conv', 'Filter tensor must be rank 4 or 5'),  # and says the rank of the input
    ('Conv', 'must be evenly divisible by filter depth'),  # of a filter of volumes, as if it were one of images
    ('RaggedTensorToTensor', 'Row partition size is greater than output size'),  # of a matrix, as if it were a vector
    ('UnsortedSegmentJoin', 'while input dimension is'),  # TensorFlow names a dimension that is not the one
    ('ScatterNd', 'Shape must be a vector, got'),  # to its kernel any tensor is a shape, to its shape function a vector
    ('GatherNd|TensorScatter.*', 'does not index into (param )?shape'),  # and, of several rows that are wrong, any
    # Then where Weir can do more,
    ('GatherNd', 'No OpKernel was registered.*DT_INT16'),
    ('Conv2DBackpropInput', 'Gradients for grouped convolutions are not supported'),
    ('FusedResizeAndPadConv2D|DepthwiseConv2dNativeBackpropInput', 'Input (rows|cols) too large'),
    # or says it in other words for a reason.
    ('Conv', 'must specify4dimensions'),  # Weir's kernel says what both shape functions say,
    ('Conv', 'Dilation rate must be >= 1'),  # and its shape function what both kernels do
    ('ReadVariableOp', 'Error while reading resource variable'),  # words of TensorFlow 1, which programs look for
    ('UnravelIndex', 'received empty tensor indices'),  # TensorFlow prints the tensor, too
}
# And those that are not mended yet: lines of an op, a kind, and why.
OPEN = os.path.join(HERE, 'bad_inputs_open.txt')
# Kinds of difference by what probe.compare() says.
KINDS = {'says ': 'text', 'Weir ended': 'crash', 'TensorFlow fails, Weir does not': 'accepts', 'kernel fails by itself': 'accepts',
         '^(kernel|shape function) fails': 'refuses', 'the codes': 'code', 'shape function fails': 'early', 'is inferred': 'shape',
         '': 'value'}


def kind_of(problem):
    return next(kind for text, kind in KINDS.items() if re.search(text, problem.split('\n')[0]))


def read_open():
    with open(OPEN) as f:
        return {tuple(line.split()[:2]) for line in f if not line.startswith('#')}


def is_meant(case, problem):
    said = f'{case.rule}: {problem}'
    return any(re.fullmatch(op, case.op) and re.search(text, said, re.S) for op, text in MEANT)


# ---- processes ----

def limit_memory():
    with open('/proc/self/statm') as f:
        size = int(f.read().split()[0]) * os.sysconf('SC_PAGE_SIZE')
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Child:
    """A process that answers questions with what |make|() returns, a function; it is replaced when it ends or takes too long."""

    def __init__(self, make, limit=LIMIT_S):
        self.make, self.limit, self.pid = make, limit, None

    def ask(self, question):
        """(answer, None), or (None, what ended it)."""
        if self.pid is None:
            self.start()
        try:
            write_whole(self.to_child, pickle.dumps(question))
            return pickle.loads(self.read()), None
        except EOFError:
            return None, self.end()

    def start(self):
        to_read, self.to_child = os.pipe()
        self.from_child, to_write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(to_read)
            os.close(to_write)
            return
        try:
            os.close(self.to_child)
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the parent: PR_SET_PDEATHSIG
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer = self.make()
            limit_memory()
            while True:
                write_whole(to_write, pickle.dumps(answer(pickle.loads(read_whole(to_read)))))
        except BaseException as error:  # pylint: disable=broad-except
            if not isinstance(error, EOFError):
                import traceback
                traceback.print_exc(file=sys.stdout)
                sys.stdout.flush()
            os._exit(3)

    def read(self):
        if not select.select([self.from_child], [], [], self.limit)[0]:
            os.kill(self.pid, signal.SIGKILL)
        return read_whole(self.from_child)

    def end(self):
        """What ended it."""
        os.close(self.to_child)
        os.close(self.from_child)
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        if not os.WIFSIGNALED(status):
            return f'exit {os.WEXITSTATUS(status)}'
        number = os.WTERMSIG(status)
        return f'{self.limit} s' if number == signal.SIGKILL else signal.Signals(number).name


def write_whole(fd, data):
    data = struct.pack('<Q', len(data)) + data
    try:
        while data:
            data = data[os.write(fd, data):]
    except BrokenPipeError as error:
        raise EOFError from error


def read_whole(fd):
    def read(size):
        data = b''
        while len(data) < size:
            more = os.read(fd, min(size - len(data), 1 << 20))
            if not more:
                raise EOFError
            data += more
        return data
    return read(struct.unpack('<Q', read(8))[0])


# ---- TensorFlow ----

class TensorFlow:
    def __init__(self):
        self.lib = random_tensorflow.Library()

    def pair(self, case):
        """As oracle.tensorflow_results() gives it, with the types of the outputs."""
        whole, types = self.run(case, False)
        if not whole.code:
            return whole, None, types
        if whole.early and self.run(case, 'of known shapes')[0].early:
            whole = whole._replace(early=2)
        return whole, self.run(case, True)[0], types

    def run(self, case, as_placeholders):
        graph, feeds, inits = oracle.build_graph([case], as_placeholders)
        if as_placeholders is True:
            hide_shapes(graph)
        try:
            session = random_tensorflow.Session(self.lib, graph.SerializeToString())
        except random_tensorflow.Error as error:
            return Result(error.code, rename(error.message), None, None, None, 1), []
        try:
            if as_placeholders == 'of known shapes':
                return Result(0, '', None, None, None), []
            return self.step(session, case, feeds, inits)
        except random_tensorflow.Error as error:
            return Result(error.code, rename(error.message), None, None, None), []
        finally:
            session.close()

    def step(self, session, case, feeds, inits):
        lib, c = self.lib, self.lib.c
        node = session.node('n0')
        types, shapes = [], []
        for i in range(c.TF_OperationNumOutputs(ctypes.c_void_p(node))):
            output, dims = random_tensorflow.Output(node, i), (ctypes.c_int64 * 256)()
            rank = c.TF_GraphGetTensorNumDims(session.graph, output, lib.status)
            if rank > 0:
                c.TF_GraphGetTensorShape(session.graph, output, dims, rank, lib.status)
            types.append(c.TF_OperationOutputType(output) % 100)
            shapes.append(None if rank < 0 else [None if d < 0 else d for d in dims[:rank]])
        self.session_run(session, targets=inits)
        fetched = [i for i, t in enumerate(types) if t not in OPAQUE]
        values = self.session_run(session, [f'n0:{i}' for i in fetched], feeds, ['n0'])
        outputs = [None] * len(types)
        for i, value in zip(fetched, values):
            outputs[i] = value
        return Result(0, '', outputs, shapes, self.variables(session, case)), types

    def session_run(self, session, fetches=(), feeds=None, targets=()):
        feeds = {k.removesuffix(':0'): v for k, v in (feeds or {}).items()}
        if not fetches and not targets:
            return []
        return session.run(Run(fetches, targets, feeds), 'four', LIMIT_S * 1000)

    def variables(self, session, case):
        out = {}
        for i, x in enumerate(case.inputs):
            if isinstance(x, oracle.Variable):
                try:
                    out[i] = self.session_run(session, [f'n0_in{i}' + (':0' if x.kind == REF else '_read:0')])[0]
                except random_tensorflow.Error:
                    out[i] = None
        return out


def hide_shapes(graph):
    """Of variables, so that their nodes' kernels are asked."""
    for node in graph.node:
        if node.op in ('VariableV2', 'VarHandleOp'):
            node.attr['shape'].shape.Clear()
            node.attr['shape'].shape.unknown_rank = True
        elif node.op == 'Assign' and node.name.endswith('_init'):
            node.attr['validate_shape'].b = False


def rename(message):
    """Of the node."""
    return re.sub(r'\bn0\b', 'node', message)


def tensorflow_of(cases):
    """Answers (number of a case, byte that is in memory nobody has written): 0 leaves there what there is."""
    tensorflow, libc = TensorFlow(), ctypes.CDLL(None)

    def answer(question):
        k, byte = question
        libc.mallopt(M_PERTURB, byte)
        return tensorflow.pair(cases[k])
    return answer


# ---- Weir ----

def weir_of(options, cases):
    probe = weir_probe.Probe(options.probe, options.lib, 1)

    def answer(k):
        if not probe.has_op(cases[k].op):
            return None
        return probe.run(cases[k].node.SerializeToString(), oracle.probe_inputs(cases[k]))
    return answer


# ---- the cases ----

def choose_bases(options, cases):
    """{op: a few of its small good cases}, which differ in types, ranks or attributes."""
    by_op = {}
    for k in sorted(range(len(cases)), key=lambda k: bad_draw.size_of(cases[k])):
        case = cases[k]
        if not WAITING.fullmatch(case.op) and not {'tf_only_fails', 'weir_only_fails', 'tf_shape_differs'} & set(case.options):
            by_op.setdefault(case.op, []).append(k)
    weir, out = Child(lambda: weir_of(options, cases)), {}
    for op, numbers in sorted(by_op.items()):
        kinds, chosen = set(), []
        for k in numbers:
            kind = tuple(None if x is None else (str(x.dtype), x.ndim) for x in arrays_of(cases[k])), len(cases[k].attrs)
            if kind in kinds:
                continue
            answer, _ = weir.ask(k)
            if answer and not answer[0].code and not answer[1].code:
                kinds.add(kind)
                chosen.append(cases[k])
            if len(chosen) == BASES:
                break
        out[op] = chosen
    return out


def arrays_of(case):
    return [x.value if isinstance(x, oracle.Variable) else x for x in case.inputs]


def draw(options):
    cases = oracle.load(options, oracle.Report(5))
    out = []
    for op, bases in choose_bases(options, cases).items():
        out += bad_draw.draw_cases(bases, options.count, random.Random(f'{options.seed} {op}'))
    for case in out:
        case.options = {**case.options, 'says': True}
    return out


# ---- judging ----

def without_untrue_shapes(result):
    """TensorFlow's result without the shapes that it infers for an output which its kernel then gives another."""
    if result.code:
        return result
    shapes = [shape if output is None or weir_probe.are_compatible(shape, output.shape) else None
              for shape, output in zip(result.shapes, result.outputs)]
    return result._replace(shapes=shapes)


class Counts:
    def __init__(self):
        self.cases = self.failed = self.refused = self.ends = self.undetermined = self.meant = self.open = 0


class Driver:
    def __init__(self, options, cases):
        self.options, self.cases, self.counts = options, cases, Counts()
        self.open = set() if options.all else read_open()
        self.weir = Child(lambda: weir_of(options, cases))
        self.tensorflow = Child(lambda: tensorflow_of(cases))
        self.writer = record.Writer('oracle', options.seed) if options.record else None

    def run(self):
        for k, case in enumerate(self.cases):
            self.judge(k, case)
        if self.writer:
            self.writer.save(self.options.record)
        return self.counts

    def judge(self, k, case):
        weir, ended = self.weir.ask(k)
        if ended:
            return self.fail(case, f'Weir ended by {ended}')  # whatever is open
        if weir is None:
            return None  # an op that this build lacks
        self.counts.cases += 1
        pair, ended = self.tensorflow.ask((k, 0))
        if ended:
            self.counts.ends += 1
            if self.options.verbose:
                print(f'TensorFlow ended by {ended}: {case.rule}: {case.describe()}', flush=True)
            return self.record(case, (None, None), [])
        *pair, types = pair
        pair[0] = without_untrue_shapes(pair[0])
        self.counts.refused += bool(pair[0].code)
        warnings = []
        problems = weir_probe.compare(case.options, types, pair, weir, warnings) + warnings
        if not problems:
            return self.record(case, pair, types)
        if is_meant(case, '\n'.join(problems)):
            self.counts.meant += 1
        elif (case.op, kind_of(problems[0])) in self.open:
            self.counts.open += 1
        elif self.is_determined(k, case, pair, types):
            self.fail(case, '\n    '.join(problems))
        else:
            self.counts.undetermined += 1
            if self.options.verbose:
                print(f'undetermined: {case.rule}: {case.describe()}: {problems[0]}', flush=True)
        return None

    def is_determined(self, k, case, pair, types):
        """Whether TensorFlow gives the same whatever is in memory that it has not written."""
        return all(self.is_same(self.tensorflow.ask((k, byte)), case, pair, types) for byte in (0x3f, 0xc1))

    def is_same(self, answered, case, pair, types):
        answer, ended = answered
        if ended:
            return False
        whole, kernel, _ = answer
        if (whole.code, whole.early) != (pair[0].code, pair[0].early):
            return False
        if whole.code:
            return (kernel.code, kernel.message) == (pair[1].code, pair[1].message)
        again = Result(0, '', whole.outputs, whole.shapes, whole.variables)
        return not weir_probe.compare(case.options, types, pair, (again, again, ''), [])

    def fail(self, case, text):
        self.counts.failed += 1
        print(f'FAIL {case.op} {kind_of(text)} {case.where} {case.rule}: {case.describe()}\n    {text}', flush=True)

    def record(self, case, pair, types):
        if self.writer and not oracle.depends_on_files(case):
            oracle.add_record(self.writer, case, pair, types)


def main():
    sys.modules.setdefault('oracle', oracle)
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--probe', help='libweir_probe.so, built already')
    parser.add_argument('--lib', default=os.path.join(tempfile.gettempdir(), 'weir_probe'))
    parser.add_argument('--seed', type=int, default=SEED)
    parser.add_argument('--fresh', action='store_true', help='draw the seed')
    parser.add_argument('--count', type=int, default=40, help='of each op')
    parser.add_argument('--verbose', action='store_true', help='says what ends TensorFlow, and what it does differently the second time')
    parser.add_argument('--all', action='store_true', help=f'prints what is in {os.path.basename(OPEN)}, too')
    parser.add_argument('--record', metavar='FILE', help='write the cases that pass, and TensorFlow\'s results')
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    if options.fresh:
        options.seed = random.randrange(1 << 31)
    print(f'seed {options.seed}', flush=True)
    start = time.monotonic()
    # Elsewhere: case files may call TensorFlow, whose threads a process that is forked later would lack.
    cases, ended = Child(lambda: lambda question: draw(options), DRAW_S).ask(None)
    if ended:
        raise SystemExit(f'no cases are drawn: {ended}')
    print(f'{len(cases)} cases of {len({c.op for c in cases})} ops, drawn in {time.monotonic() - start:.0f} s', flush=True)
    counts = Driver(options, cases).run()
    print(f'{counts.cases} cases in {time.monotonic() - start:.0f} s: {counts.refused} refused by TensorFlow, {counts.ends} end it; '
          f'{counts.failed} differ, {counts.meant} as is meant, {counts.open} as in {os.path.basename(OPEN)}, {counts.undetermined} undetermined')
    return int(counts.failed > 0)


if __name__ == '__main__':
    sys.exit(main())
