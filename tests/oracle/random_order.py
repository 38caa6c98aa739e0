"""What order a program leaves open, more of it than repeated runs would show: delays here and there, and a look at failing steps."""
import re

from random_graph import FLOAT, INT32, RESOURCE, Node, tensor, type_

HARMLESS = ('ReadVariableOp', 'VarHandleOp', 'VariableV2', 'QueueSizeV2', 'FIFOQueueV2', 'VarIsInitializedOp', 'VariableShape',
            'ResourceGather', 'ResourceGatherNd')
WRITES = re.compile('^(Assign|Scatter|Resource|Apply|Queue|CountUpTo|StridedSliceAssign|StatefulPartitionedCall|If|While|Case|'
                    'Stack|TensorArray)')


def is_write(node, functions):
    """Whether the node may change state, in a function it calls too."""
    if node.op in functions:
        return True
    return node.op not in HARMLESS and bool(WRITES.match(node.op)) and not node.op.startswith('ScatterNdNonAliasing')


def is_call(program, name):
    """Whether the node runs functions, whose own order is not looked at."""
    node = next(n for n in program.nodes if n.name == name)
    return any(node.op == f.name for f in program.functions) or any(kind in ('func', 'funcs') for kind, _ in node.attrs.values())


def as_fed(program, run):
    """The program as the run sees it: whoever reads what is fed waits for nothing."""
    other, fed = program.copy(), {name if ':' in name else name + ':0' for name in run.feeds}
    for node in other.nodes:
        node.inputs = [i for i in node.inputs if i[0] == '^' or (i if ':' in i else i + ':0') not in fed]
    return other


def ancestors(program, leave_out=()):
    """{node: set of the nodes it depends on}, loops included. Of ops to |leave_out| only those it waits for."""
    inputs = {n.name: {i.lstrip('^').split(':')[0] for i in n.inputs if i[0] == '^' or n.op not in leave_out} for n in program.nodes}
    result = {}
    for name in inputs:
        seen, todo = set(), [name]
        while todo:
            for other in inputs.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        result[name] = seen
    return result


def surely_before(body):
    """{node: set of the nodes that have run when it does}, within an iteration: a Merge waits for one of its inputs."""
    nodes, result = {n.name: n for n in body.nodes}, {}

    def visit(name):
        node = nodes.get(name)
        if node is None or name in result:
            return result.setdefault(name, set())
        result[name] = set()  # of a loop's own beginning
        data = [i.split(':')[0] for i in node.inputs if i[0] != '^']
        if node.op.endswith('NextIteration'):
            return result[name]
        sets = [visit(i) | {i} for i in data if not nodes.get(i, node).op.endswith('NextIteration')]
        is_merge = node.op in ('Merge', 'RefMerge')
        found = set.intersection(*sets) if is_merge and sets else set().union(*sets)
        result[name] = found.union(*(visit(i[1:]) | {i[1:]} for i in node.inputs if i[0] == '^'))
        return result[name]
    for name in nodes:
        visit(name)
    return result


def failed_node(message, names):
    """The node of the graph that failed: the outermost of those the message lists."""
    found = [m for m in re.findall(r'\[\[(?:\{\{node )?([^\]}]+)(?:\}\})?\]\]', message)]
    return found[-1] if found and found[-1] in names else None


def determined(program, outcomes, is_spread=False):
    """How many runs, from the first on, leave nothing open: each write of a failing one comes before or after what failed, and
    where the program is |is_spread| over tasks no other task is still at work."""
    failing = [i for i, o in enumerate(outcomes) if o.code]
    if not failing or is_spread:
        return failing[0] + 1 if failing else len(outcomes)
    functions = {f.name for f in program.functions}
    writers = [n.name for n in program.nodes if is_write(n, functions)]
    for i in failing:
        run = program.runs[i]
        fed = as_fed(program, run)
        before, needed = surely_before(fed), ancestors(fed)
        if 'Retval' in outcomes[i].message:  # found out after the step
            continue
        roots = {n.split(':')[0] for n in run.fetches + run.targets}
        reached = roots.union(*(needed.get(r, ()) for r in roots))
        mine = [w for w in writers if w in reached]
        node = failed_node(outcomes[i].message, before)
        if mine and (node is None or node in mine and is_call(program, node) or any(w != node and w not in before[node] and node not in before[w] for w in mine)):
            return i + 1
    return len(outcomes)


def asked_for_shapes(program, run, outcome):
    """Whether the node that failed is needed for nothing but the shapes of what is made of it."""
    needed = ancestors(as_fed(program, run), leave_out=('Shape', 'ShapeN', 'Rank', 'Size'))
    node = failed_node(outcome.message, needed)
    return node is not None and not any(node == root or node in needed.get(root, ()) for root in (n.split(':')[0] for n in run.fetches + run.targets))


# ---- races ----

# What may hand on the memory of a reference variable instead of a value of its own.
HANDS_ON = {'Identity', 'IdentityN', 'StopGradient', 'PreventGradient', 'CheckNumerics', 'Reshape', 'Squeeze', 'ExpandDims', 'Transpose',
            'Cast', 'Bitcast', 'Slice', 'StridedSlice', 'Split', 'Unpack', 'Switch', 'Merge', 'Enter', 'Exit', 'NextIteration',
            'LoopCond', 'Tile', 'Concat', 'ConcatV2', 'Pack', 'Pad', 'Sum', 'Mean', 'Max', 'Min', 'Prod', 'BroadcastTo', 'AddN'}


HOLDERS = ('VariableV2', 'Variable', 'VarHandleOp')
RETURNS_REFERENCE = re.compile('^(Ref|Assign(Add|Sub)?$|Scatter|Apply|StridedSliceAssign)')


def memory_of(body):
    """{node: names of the variables whose handle or memory its outputs may be}."""
    memory = {n.name: {n.attrs['shared_name'][1] or n.name} for n in body.nodes if n.op in HOLDERS}
    memory |= {name: {'any'} for name, dtype in getattr(body, 'args', ()) if dtype == RESOURCE}
    is_new = True
    while is_new:
        is_new = False
        for node in body.nodes:
            if node.op in HANDS_ON or RETURNS_REFERENCE.match(node.op):
                found = held_by(node, memory)
                is_new |= not found <= memory.get(node.name, set())
                memory[node.name] = memory.get(node.name, set()) | found
    return memory


def held_by(node, memory):
    return set().union(*(memory.get(i.split(':')[0], ()) for i in node.inputs if i[0] != '^'))


def races(body, functions, keeps_size):
    """Pairs of nodes that use the same variable, one writing it, with nothing to say which comes first."""
    before, memory, users, writers = surely_before(body), memory_of(body), [], []
    for node in body.nodes:
        held = held_by(node, memory)
        if held and not (keeps_size and node.op in HANDS_ON):
            users.append((node.name, held, before[node.name]))
        # Put in place, a conditional is a Switch for each input, which waits for nothing else, and each looks at the predicate.
        predicate = node.inputs[0].split(':')[0] if node.attrs.get('_lower_using_switch_merge') == ('bool_', True) else None
        if memory.get(predicate):
            users.append((node.name, memory[predicate], before[predicate] | {predicate}))
        if held and is_write(node, functions):
            writers.append((node.name, held))
    for user, held, earlier in users:
        for writer, others in writers:
            if user != writer and held & others and user not in before[writer] and writer not in earlier:
                yield user, writer


def has_race(program, outcomes):
    """Whether in one of the runs with these outcomes, or in a function, something reads or writes a variable with nothing to say
    whether before or after another writes it: delays show only some of what may come of it."""
    functions = {f.name for f in program.functions}
    keeps_size = not any(n.attrs.get('validate_shape') == ('bool_', False) for n in program.nodes)
    keeps_size &= not any('uninitialized' in o.message for o in outcomes)
    if any(True for f in program.functions for _ in races(f, functions, keeps_size)):
        return True
    pairs, needed = list(races(program, functions, keeps_size)), ancestors(program)
    for run in program.runs[:len(outcomes)]:
        roots = {n.split(':')[0] for n in run.fetches + run.targets}
        reached = roots.union(*(needed.get(r, ()) for r in roots))
        if any(user in reached and writer in reached for user, writer in pairs):
            return True
    return False


# ---- delays ----

def in_loops(nodes):
    """Names of the nodes between an Enter and its Exit."""
    users = {}
    for node in nodes:
        for i in node.inputs:
            users.setdefault(i.lstrip('^').split(':')[0], []).append(node)
    todo = [n for n in nodes if n.op in ('Enter', 'RefEnter')]
    seen = {n.name for n in todo}
    while todo:
        for user in users.get(todo.pop().name, ()):
            if user.name not in seen and user.op not in ('Exit', 'RefExit'):
                seen.add(user.name)
                todo.append(user)
    return seen


def delayed(program, rng):
    """The same program with nodes behind chains of NoOps and inputs of Merges behind chains of Identities, at random."""
    other, inside, added = program.copy(), in_loops(program.nodes), []
    share, longest = rng.choice((0.1, 0.3, 0.6)), rng.choice((8, 40))
    fed = {name.split(':')[0] for run in program.runs for name in run.feeds}
    for node in other.nodes:
        if node.name in inside:
            continue
        if node.op == 'Merge':
            first = rng.randrange(node.attrs['N'][1])  # which of those alive arrives first is open
            for k in range(node.attrs['N'][1]):
                if k != first:
                    node.inputs[k] = chain(added, f'delay{len(added)}', node.inputs[k], node.attrs['T'], rng.randrange(30, 60))
        elif node.name not in fed and rng.random() < share:
            last = chain(added, f'delay{len(added)}', None, None, rng.randint(1, longest))
            node.inputs.append('^' + last)
    other.nodes += added
    return other


def each_delayed(program):
    """The program once for each of its nodes, those of functions too, with that one alone some milliseconds late. Draws take that
    time: TensorFlow runs a chain of small nodes before it lets another thread have the rest."""
    fed = {name.split(':')[0] for run in program.runs for name in run.feeds}
    for k, body in enumerate([program] + program.functions):
        inside = in_loops(body.nodes) | (fed if body is program else set())
        for i, node in enumerate(body.nodes):
            if node.name not in inside:
                other = program.copy()
                make_late(([other] + other.functions)[k], i)
                yield other


def make_late(body, i):
    count = Node('late_count', 'Const', [], {'dtype': type_(INT32), 'value': tensor('int32', [1], [400000])})
    source = 'late_count:output:0' if hasattr(body, 'results') else 'late_count'
    body.nodes[i].inputs.append('^late')
    body.nodes += [count, Node('late', 'RandomUniform', [source], {'dtype': type_(FLOAT), 'T': type_(INT32)})]


def chain(added, prefix, source, dtype, length):
    """Adds a chain of nodes; the name of the last."""
    for i in range(length):
        name = f'{prefix}_{i}'
        if dtype:
            added.append(Node(name, 'Identity', [source], {'T': dtype}))
        else:
            added.append(Node(name, 'NoOp', ['^' + source] if source else [], {}))
        source = name
    return source
