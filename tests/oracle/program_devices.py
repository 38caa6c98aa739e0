"""Programs about memory, with every node on a device of its own choice, in TensorFlow and in Weir.

What was read of a reference variable shares the variable's memory, until it crosses to another memory: that is a copy. CPUs of
one process share theirs, in TensorFlow as in Weir. A guard's memory is another one; what TensorFlow does there is what it does
between tasks: a value is copied some time between its being made and its first reader, one that is read by reference when all
else that its reader waits for has come. Where the graph does not order a write and such a copy, anything may come of it.
"""
import re

import oracle
import tensorflow as tf

tf1 = tf.compat.v1
WRITES = re.compile('(Assign|Scatter|Apply|StridedSliceAssign)')
# What makes new memory of its inputs, whatever they are.
MAKES = {'AddV2', 'Mul', 'Neg', 'GatherV2', 'ConcatV2', 'Snapshot', 'Roll', 'ConjugateTranspose', 'StringJoin', 'Fill'}
HOST_ONLY = re.compile('(FIFOQueue|Queue)')  # their elements are the host's


def is_ref(tensor):
    return tensor.dtype._is_ref_dtype  # pylint: disable=protected-access


class Groups:
    """Nodes that must be on one device: of a reference, a handle, a name, a frame; and a Switch, which TensorFlow moves there."""

    def __init__(self, graph):
        self.parent = {}
        named = {}
        for op in graph.get_operations():
            takes_ref = [arg.is_ref for arg in op.op_def.input_arg]
            for i, x in enumerate(op.inputs):
                bound = x.dtype == tf.resource or op.type in ('Exit', 'Switch')
                if bound or is_ref(x) and i < len(takes_ref) and takes_ref[i]:
                    self.join(op.name, x.op.name)
            name = op.get_attr('shared_name') if 'shared_name' in op.node_def.attr else b''
            if name:
                self.join(op.name, named.setdefault(name, op.name))

    def find(self, name):
        while name in self.parent:
            name = self.parent[name]
        return name

    def join(self, a, b):
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parent[a] = b


def draw_devices(graph, devices, rng):
    """{node: device}, at random."""
    groups, chosen = Groups(graph), {}
    ops = graph.get_operations()
    for op in ops:
        if HOST_ONLY.match(op.type) or any(t.dtype.base_dtype == tf.string for t in [*op.inputs, *op.outputs]):
            chosen[groups.find(op.name)] = '/device:CPU:0'
    for op in ops:
        chosen.setdefault(groups.find(op.name), devices[int(rng.integers(len(devices)))])
    return {op.name: chosen[groups.find(op.name)] for op in ops}


def with_devices(graph_def, devices):
    placed = tf1.GraphDef()
    placed.CopyFrom(graph_def)
    for node in placed.node:
        node.device = devices[node.name]
    return placed


# ---- what the order of a step leaves open ----

def memory_of(device):
    return device if 'GUARD' in device else 'host'


class Order:
    """Who comes before whom in a step."""

    def __init__(self, graph, names):
        self.before = {}  # by node: all that it waits for, itself too
        todo = [graph.get_operation_by_name(n.split(':')[0]) for n in names]
        while todo:
            op = todo[-1]
            waits_for = [t.op for t in op.inputs] + list(op.control_inputs)
            new = [o for o in waits_for if o.name not in self.before]
            if op.name in self.before or not new:
                todo.pop()
                self.before.setdefault(op.name, {op.name}.union(*(self.before[o.name] for o in waits_for)))
            todo.extend(new)
        self.ops = [op for op in graph.get_operations() if op.name in self.before]

    def is_before(self, a, b):
        return a in self.before[b]


def shares(op):
    """Whether what comes out may be what went in."""
    if op.type == 'Sum':
        axis = tf.get_static_value(op.inputs[1])
        return axis is None or axis.size == 0
    return op.type not in MAKES


def find_open(graph, step, devices):
    """A crossing of the step whose copy may be made before or after a write, or None. Nor is it known which of a constant and
    another input comes first to a Merge."""
    order = Order(graph, step.fetches + step.targets)
    for op in order.ops:
        if op.type == 'Merge' and any(t.op.type == 'Const' for t in op.inputs):
            return op.name
    memory = {name: memory_of(device) for name, device in devices.items()}
    variables = {}  # by node: those whose memory it may hand on
    for op in order.ops:  # which are in topological order
        near = [t.op.name for t in op.inputs if memory[t.op.name] == memory[op.name]]
        known = set().union(*(variables[n] for n in near)) if shares(op) else set()
        if op.type == 'VariableV2':
            known = {op.get_attr('shared_name') or op.name}
        variables[op.name] = known
    writes = [(op.name, variables[op.inputs[0].op.name]) for op in order.ops
              if WRITES.match(op.type) and op.inputs and is_ref(op.inputs[0])]
    crossings = [(t, op) for op in order.ops for t in op.inputs if memory[t.op.name] != memory[op.name]]
    crossings += [(graph.get_tensor_by_name(n), None) for n in step.fetches if memory[n.split(':')[0]] != 'host']
    for tensor, reader in crossings:
        for write, written in writes:
            if written & variables[tensor.op.name] and not is_ordered(order, tensor, reader, write):
                return f'{tensor.name} to {reader.name if reader else "the caller"}, {write}'
    return None


def is_ordered(order, tensor, reader, write):
    if order.is_before(write, tensor.op.name) or reader and order.is_before(reader.name, write):
        return True
    if not reader or not is_ref(tensor):
        return False
    others = [t.op for t in reader.inputs if not is_ref(t)] + list(reader.control_inputs)
    return any(order.is_before(write, o.name) for o in others)


# ---- TensorFlow's side ----

class Tasks:
    """Of TensorFlow: one with two CPUs for those of Weir, and one for each guard."""
    NAMES = {'/device:CPU:0': '/job:worker/task:0/device:CPU:0', '/device:CPU:1': '/job:worker/task:0/device:CPU:1',
             '/device:GUARD:0': '/job:worker/task:1/device:CPU:0', '/device:GUARD:1': '/job:worker/task:2/device:CPU:0'}
    servers = None

    @classmethod
    def target(cls):
        if cls.servers is None:
            from ports import free_ports  # pylint: disable=import-outside-toplevel
            spec = tf.train.ClusterSpec({'worker': [f'localhost:{port}' for port in free_ports(3)]})
            cls.servers = [tf.distribute.Server(spec, job_name='worker', task_index=i, config=config()) for i in range(3)]
        return cls.servers[0].target


def config():
    made = oracle.session_config()
    made.device_count['CPU'] = 2
    made.inter_op_parallelism_threads = 2
    made.isolate_session_state = True
    return made
