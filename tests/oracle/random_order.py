"""What order a program itself leaves open after a failing node, which no number of repeated runs would show."""
import re

HARMLESS = ('ReadVariableOp', 'VarHandleOp', 'VariableV2', 'QueueSizeV2', 'FIFOQueueV2', 'VarIsInitializedOp', 'VariableShape',
            'ResourceGather', 'ResourceGatherNd')
WRITES = re.compile('^(Assign|Scatter|Resource|Apply|Queue|CountUpTo|StridedSliceAssign|StatefulPartitionedCall|If|While|Case|'
                    'Stack|TensorArray)')


def is_write(node, functions):
    """Whether the node may change state, in a function it calls too."""
    if node.op in functions:
        return True
    return node.op not in HARMLESS and bool(WRITES.match(node.op)) and not node.op.startswith('ScatterNdNonAliasing')


def ancestors(program):
    """{node: set of the nodes it depends on}, loops included."""
    inputs = {n.name: {i.lstrip('^').split(':')[0] for i in n.inputs} for n in program.nodes}
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


def failed_node(message, names):
    """The node of the graph that failed: the outermost of those the message lists."""
    found = [m for m in re.findall(r'\[\[(?:\{\{node )?([^\]}]+)(?:\}\})?\]\]', message)]
    return found[-1] if found and found[-1] in names else None


def determined(program, outcomes):
    """How many runs, from the first on, leave nothing open: each write of a failing one comes before or after what failed."""
    failing = [i for i, o in enumerate(outcomes) if o.code]
    if not failing:
        return len(outcomes)
    before = ancestors(program)
    functions = {f.name for f in program.functions}
    writers = [n.name for n in program.nodes if is_write(n, functions)]
    for i in failing:
        run = program.runs[i]
        if 'Retval' in outcomes[i].message:  # found out after the step
            continue
        roots = {n.split(':')[0] for n in run.fetches + run.targets}
        reached = roots.union(*(before.get(r, ()) for r in roots))
        mine = [w for w in writers if w in reached]
        node = failed_node(outcomes[i].message, before)
        if mine and (node is None or any(w != node and w not in before[node] and node not in before[w] for w in mine)):
            return i + 1
    return len(outcomes)
