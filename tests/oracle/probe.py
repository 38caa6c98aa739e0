"""One node by itself in Weir, through libweir_probe.so, and the comparison of what it gives with what TensorFlow gave."""
import collections
import ctypes
import os
import subprocess

import numpy as np

from messages import compare_messages
from values import OPAQUE, code_name, compare_determined, compare_values, first_message, read_tensor, write_tensor

HERE = os.path.dirname(os.path.abspath(__file__))
TENSOR, REF, RESOURCE = 0, 1, 2
RESOURCE_EXHAUSTED, MAX_ALLOCATIONS = 8, 100
DTYPE_OF = {'float32': 1, 'int32': 3}

# |shapes| is a list of lists of dimensions, None where unknown. |early|: 1 where TensorFlow refuses the node before anything runs: by
# its types, or by its shape function; 2: also without the values of its inputs. Of Weir's results, that there is an error then.
Result = collections.namedtuple('Result', 'code message outputs shapes variables early', defaults=[0])
# An input as the probe takes it: TENSOR, REF or RESOURCE, the enum of a variable's type, a TensorProto (b'': not initialised).
Input = collections.namedtuple('Input', 'kind dtype proto')


class Probe:
    def __init__(self, file, directory, threads, devices='cpu', fake_cuda=False):
        if not file:
            # Rebuilding replaces the file and leaves a library in use alone.
            subprocess.run([os.path.join(HERE, 'build_probe.sh'), directory], check=True)
            file = os.path.join(directory, 'libweir_probe.so')
        self.lib = ctypes.CDLL(os.path.abspath(file))
        lib = self.lib
        lib.weir_probe_start.restype = ctypes.c_char_p
        lib.weir_probe_run.restype = ctypes.c_void_p
        for name in ('code', 'message', 'complaint', 'output_count', 'output', 'variable', 'shape', 'free'):
            getattr(lib, 'weir_probe_' + name).argtypes = None
        lib.weir_probe_message.restype = ctypes.c_char_p
        lib.weir_probe_complaint.restype = ctypes.c_char_p
        lib.weir_probe_output.restype = ctypes.c_void_p
        lib.weir_probe_variable.restype = ctypes.c_void_p
        lib.weir_probe_op_def.restype = ctypes.c_void_p
        if fake_cuda:
            lib.weir_probe_fake_cuda()
        message = lib.weir_probe_start(threads, devices.encode())
        if message:
            raise SystemExit('the registry of ops, or the list of devices, is bad: ' + message.decode())
        self.device_count = lib.weir_probe_device_count()

    def has_op(self, name):
        return bool(self.lib.weir_probe_has_op(name.encode()))

    def op_def(self, name):
        """A serialised OpDef."""
        size = ctypes.c_size_t()
        data = self.lib.weir_probe_op_def(name.encode(), ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    def tensor(self, function, handle, i):
        size = ctypes.c_size_t()
        data = function(handle, i, ctypes.byref(size))
        return read_tensor(ctypes.string_at(data, size.value)) if data else None

    def run(self, node, inputs, device=0):
        """(shape result, kernel result, complaint) of a serialised NodeDef on a device, by its number."""
        lib, count = self.lib, len(inputs)
        protos = [x.proto for x in inputs]
        handle = ctypes.c_void_p(lib.weir_probe_run(
            device, node, ctypes.c_size_t(len(node)), count, (ctypes.c_char_p * max(1, count))(*protos),
            (ctypes.c_size_t * max(1, count))(*map(len, protos)), (ctypes.c_int * max(1, count))(*[x.kind for x in inputs]),
            (ctypes.c_int * max(1, count))(*[x.dtype for x in inputs])))
        try:
            return self.collect(handle, inputs)
        finally:
            lib.weir_probe_free(handle)

    def collect(self, handle, inputs):
        lib = self.lib
        outputs, shapes, variables = [], [], {}
        codes = [lib.weir_probe_code(handle, k) for k in (0, 1)]
        if codes[0] == 0:
            dims = (ctypes.c_int64 * 256)()
            for i in range(lib.weir_probe_output_count(handle)):
                rank = lib.weir_probe_shape(handle, i, dims)
                shapes.append(None if rank < 0 else [None if d < 0 else d for d in dims[:rank]])
        if codes[1] == 0:
            outputs = [self.tensor(lib.weir_probe_output, handle, i)
                       for i in range(lib.weir_probe_output_count(handle))]
            variables = {i: self.tensor(lib.weir_probe_variable, handle, i)
                         for i, x in enumerate(inputs) if x.kind != TENSOR}
        early = (codes[0] != 0) + (lib.weir_probe_code(handle, 2) != 0)
        results = [Result(codes[k], lib.weir_probe_message(handle, k).decode(errors='replace'), outputs, shapes, variables, early)
                   for k in (0, 1)]
        return results[0], results[1], lib.weir_probe_complaint(handle).decode(errors='replace')


# ---- variables of another type ----

def mistype(inputs, i):
    """The inputs, but the resource variable |i| is of another type."""
    value = read_tensor(inputs[i].proto)
    other = np.zeros(value.shape, np.float32 if value.dtype == np.int32 else np.int32)
    return [*inputs[:i], Input(RESOURCE, DTYPE_OF[other.dtype.name], write_tensor(other)), *inputs[i + 1:]]


def check_mistyped(probe, node, inputs, wrong):
    """What is wrong where each of the variables |wrong| is of a type that the node's attributes do not say. It must be
    INVALID_ARGUMENT; TensorFlow's kernels check that, too, or else end the process."""
    results = [(i, probe.run(node, mistype(inputs, i))[1]) for i in wrong]
    return [f'variable {i} of another type: {code_name(result.code)} {result.message}' for i, result in results if result.code != 3]


# ---- memory that is not there ----

def check_exhausted(probe, node, inputs, whole, exact, device=0):
    """What is wrong where an allocation of the node fails, each in turn: that is an error, or the result is the same. TensorFlow ends
    the process instead."""
    successes = 0
    for n in range(1, MAX_ALLOCATIONS):
        probe.lib.weir_probe_fail_at(n)
        shape_result, kernel_result, _ = probe.run(node, inputs, device)
        probe.lib.weir_probe_fail_at(0)
        for result, what in ((shape_result, 'shape function'), (kernel_result, 'kernel')):
            if result.code not in (0, RESOURCE_EXHAUSTED):
                return [f'allocation {n} fails: {what}: {code_name(result.code)}: {result.message}']
        if kernel_result.code == 0:
            differing = [i for i, (a, b) in enumerate(zip(kernel_result.outputs, whole.outputs))
                         if a is not None and (a.shape != b.shape or exact and compare_values(a, b, {'exact': True}))]
            if differing:
                return [f'allocation {n} fails, and outputs {differing} differ without an error']
        successes = successes + 1 if shape_result.code == kernel_result.code == 0 else 0
        if successes == 3:  # what fails is not there, or not needed
            break
    return []


# ---- comparison ----

def compare_failure(options, whole, kernel, shape_result, kernel_result):
    """TensorFlow failed with |whole|; by its kernel alone with |kernel|, which may have succeeded."""
    problems = []
    if options.get('tf_only_fails'):
        return problems
    weir_code = shape_result.code or kernel_result.code
    messages = f'\n      tensorflow: {code_name(whole.code)}: {first_message(whole.message)}' \
               f'\n      kernel:     {code_name(kernel.code)}: {first_message(kernel.message)}' \
               f'\n      weir shape: {code_name(shape_result.code)}: {first_message(shape_result.message)}' \
               f'\n      weir:       {code_name(kernel_result.code)}: {first_message(kernel_result.message)}'
    if weir_code == 0:
        problems.append('TensorFlow fails, Weir does not' + messages)
    elif whole.early and not shape_result.code:
        problems.append("TensorFlow's shape function fails, Weir's does not" + messages)
    elif whole.early == 2 and shape_result.early != 2 and not options.get('needs_value'):
        problems.append("TensorFlow's shape function fails without values, Weir's does not" + messages)
    elif weir_code != whole.code and weir_code != kernel.code:
        problems.append('the codes differ' + messages)
    elif kernel.code and not kernel_result.code:
        problems.append("TensorFlow's kernel fails by itself, Weir's does not" + messages)
    elif kernel.code and kernel.code != kernel_result.code:
        problems.append('the codes of the kernels differ' + messages)
    elif options.get('says'):
        problems += [f'{what} {text}{messages}' for what, text in unlike_messages(whole, kernel, shape_result, kernel_result)][:1]
    return problems


def unlike_messages(whole, kernel, shape_result, kernel_result):
    """(whose, what is wrong with it) where a message does not say what TensorFlow's says. What Weir's shape function refuses before
    TensorFlow's kernel does need not be said as there; the kernel then says it."""
    pairs = ('the shape function', shape_result, whole, whole.early), ('the kernel', kernel_result, kernel, not kernel.early)
    found = [(what, compare_messages(got.message, want.message)) for what, got, want, is_same in pairs
             if is_same and got.code and got.code == want.code]
    return [(what, text) for what, text in found if text]


def compare(options, output_dtypes, pair, weir, warnings):
    """The list of what is wrong with a case. |pair|: TensorFlow's result, and its kernel's alone where that failed."""
    whole, kernel = pair
    shape_result, kernel_result, complaint = weir
    if whole.code:
        return compare_failure(options, whole, kernel, shape_result, kernel_result)
    for result, what in ((shape_result, 'shape function'), (kernel_result, 'kernel')):
        if result.code:
            if options.get('weir_only_fails'):
                return []
            return [f'{what} fails: {code_name(result.code)}: {result.message}']
    problems = [complaint] if complaint else []
    up_to = options.get('up_to')
    for i, want in enumerate(whole.outputs):
        if output_dtypes[i] in OPAQUE:
            continue
        problem = compare_values(kernel_result.outputs[i], want, dict(options, shapes_only=True) if up_to else options)
        if problem:
            problems.append(f'output {i}: {problem}')
        if options.get('tf_shape_differs'):
            continue
        inferred, text = kernel_result.shapes[i], f'output {i} is inferred as {kernel_result.shapes[i]}, by TensorFlow as '
        if not are_compatible(inferred, whole.shapes[i]):
            problems.append(f'{text}{whole.shapes[i]}')
        elif is_weaker(inferred, whole.shapes[i]):
            warnings.append(f'{text}{whole.shapes[i]}')
    if up_to and not problems:
        problems += compare_determined(kernel_result.outputs, whole.outputs, up_to, options)
    for i, want in whole.variables.items():
        problem = compare_values(kernel_result.variables.get(i), want, options)
        if problem:
            problems.append(f'variable {i}: {problem}')
    return problems


def are_compatible(a, b):
    return a is None or b is None or \
        (len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b)))


def is_weaker(got, want):
    if want is None:
        return False
    return got is None or any(g is None and w is not None for g, w in zip(got, want))
