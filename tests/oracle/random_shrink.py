"""Makes a failing program small: whatever can go while it still fails goes."""
import time

from random_graph import Node, RawFunction, array, type_
from values import ENUM


def shrink(program, fails, value_of=None, seconds=30):
    """The smallest found in that time. |fails|(program) is what must stay true; |value_of|(program, name): a tensor of it."""
    end = time.monotonic() + seconds
    best, is_smaller = program, True
    while is_smaller:
        is_smaller = False
        for step in (fewer_runs, fewer_names, fewer_in_functions, unlooped, bypassed, fewer_controls, constants, plainer):
            for candidate in step(lambda: best, value_of):
                if time.monotonic() > end:
                    return best
                candidate = pruned(candidate)
                if size(candidate) < size(best) and is_sound(candidate) and fails(candidate):
                    best, is_smaller = candidate, True
    return best


def size(program):
    nodes = program.nodes + [n for f in program.functions for n in f.nodes]
    return (sum(2 + len(n.inputs) + (n.op != 'Const') for n in nodes) + 3 * len(program.runs) + 3 * len(program.functions) +
            sum(len(r.fetches) + len(r.targets) + len(r.feeds) for r in program.runs) +
            (program.threads > 1) + bool(program.disabled) + sum(len(f.args) + len(f.results) + len(f.controls) for f in program.functions))


def is_sound(program):
    """Whether every loop is one that a client could have made: one that is not may run for ever."""
    return all(is_sound_part(part) for part in [program.nodes] + [f.nodes for f in program.functions])


def is_sound_part(nodes):
    by_name = {n.name: n for n in nodes}

    def sources(node):
        return [by_name[i.lstrip('^').split(':')[0]] for i in node.inputs if i.lstrip('^').split(':')[0] in by_name]
    for node in nodes:
        ops = [s.op for s in sources(node)]
        if node.op == 'Merge' and 'Enter' in ops and ops != ['Enter', 'NextIteration']:
            return False
        if node.op == 'Exit' and ops[:1] != ['Switch']:
            return False
        if node.op == 'NextIteration' and not meets_switch(node, sources):
            return False
    return True


def meets_switch(node, sources):
    """Whether a Switch decides whether the node runs, and not an invariant of the loop alone."""
    todo, seen = [node], set()
    while todo:
        for source in sources(todo.pop()):
            if source.op == 'Switch':
                return True
            if source.name not in seen and source.op not in ('Enter', 'RefEnter'):
                seen.add(source.name)
                todo.append(source)
    return False


def unlooped(best, _):
    """What enters a loop instead of what leaves it."""
    for name in [n.name for n in best().nodes if n.op == 'Exit']:
        by_name = {n.name: n for n in best().nodes}
        node = by_name.get(name)
        for _ in range(4):  # Exit, Switch, Merge, Enter
            node = node and by_name.get(node.inputs[0].split(':')[0]) if node is None or node.op != 'Enter' else node
        if node is not None and node.op == 'Enter':
            candidate = best().copy()
            replaced(candidate.nodes, name, node.inputs[0])
            for run in candidate.runs:
                run.fetches = [with_index(node.inputs[0]) if f == name + ':0' else f for f in run.fetches]
            yield candidate


def pruned(program):
    """Without nodes, feeds and functions that no run reaches."""
    program = program.copy()
    by_name = {n.name: n for n in program.nodes}
    todo = [n.split(':')[0] for r in program.runs for n in r.fetches + r.targets]
    seen = set()
    while todo:
        name = todo.pop()
        if name not in seen and name in by_name:
            seen.add(name)
            todo += [i.lstrip('^').split(':')[0] for i in by_name[name].inputs]
    program.nodes = [n for n in program.nodes if n.name in seen]
    for run in program.runs:
        run.feeds = {k: v for k, v in run.feeds.items() if k.split(':')[0] in seen}
    used, todo = set(), list(program.nodes)
    functions = {f.name: f for f in program.functions}
    while todo:
        node = todo.pop()
        names = [node.op] + [v for kind, v in node.attrs.values() if kind == 'func'] + \
            [n for kind, v in node.attrs.values() if kind == 'funcs' for n in v]
        if any(isinstance(f, RawFunction) for f in program.functions):
            return program
        for name in names:
            if name in functions and name not in used:
                used.add(name)
                todo += functions[name].nodes
    program.functions = [f for f in program.functions if f.name in used]
    return program


def prune_function(function):
    by_name = {n.name: n for n in function.nodes}
    todo, seen = [v.split(':')[0] for _, _, v in function.results] + list(function.controls), set()  # what has an effect is one
    while todo:
        name = todo.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            todo += [i.lstrip('^').split(':')[0] for i in by_name[name].inputs]
    function.nodes = [n for n in function.nodes if n.name in seen]


def fewer_runs(best, _):
    i = len(best().runs) - 1
    while i >= 0:
        candidate = best().copy()
        if i < len(candidate.runs) > 1:
            del candidate.runs[i]
            yield candidate
        i -= 1


def fewer_names(best, _):
    for r in range(len(best().runs)):
        for part in ('fetches', 'targets'):
            for i in reversed(range(len(getattr(best().runs[r], part)))):
                candidate = best().copy()
                names = getattr(candidate.runs[r], part)
                if i < len(names) and len(candidate.runs[r].fetches) + len(candidate.runs[r].targets) > 1:
                    del names[i]
                    yield candidate


def replaced(nodes, name, other):
    """In the inputs of |nodes|: |other| for |name|, control edges too."""
    for node in nodes:
        node.inputs = [other if i in (name, name + ':0') else '^' + other.split(':')[0] if i == '^' + name else i
                       for i in node.inputs]


def bypassed(best, _):
    """Consumers of a node take one of its inputs instead."""
    for name in [n.name for n in reversed(best().nodes)]:
        node = next((n for n in best().nodes if n.name == name), None)
        if node is None:
            continue
        for data in dict.fromkeys(i for i in node.inputs if i[0] != '^'):
            candidate = best().copy()
            replaced(candidate.nodes, name, data)
            for run in candidate.runs:
                run.fetches = [with_index(data) if f == name + ':0' else f for f in run.fetches]
            yield candidate


def with_index(name):
    return name if ':' in name else name + ':0'


def fewer_controls(best, _):
    for name in [n.name for n in best().nodes]:
        node = next((n for n in best().nodes if n.name == name), None)
        for control in [i for i in (node.inputs if node else []) if i[0] == '^']:
            candidate = best().copy()
            next(n for n in candidate.nodes if n.name == name).inputs.remove(control)
            yield candidate
            candidate = best().copy()  # or what comes before it directly
            node = next(n for n in candidate.nodes if n.name == name)
            source = next((n for n in candidate.nodes if n.name == control[1:]), None)
            if control in node.inputs and source is not None and source.inputs:
                node.inputs[node.inputs.index(control)] = '^' + source.inputs[0].lstrip('^').split(':')[0]
                yield candidate


def constants(best, value_of):
    """A constant in place of a node: what TensorFlow makes of it in the last run."""
    for name in [n.name for n in best().nodes] if value_of else []:
        node = next((n for n in best().nodes if n.name == name), None)
        if node is None or node.op in ('Const', 'Switch', 'NextIteration', 'VariableV2', 'VarHandleOp'):
            continue
        value = value_of(best(), name)
        if value is None:
            continue
        candidate = best().copy()
        at = [n.name for n in candidate.nodes].index(name)
        candidate.nodes[at] = Node(name, 'Const', [], {'dtype': type_(ENUM[value.dtype]), 'value': array(value)})
        for run in candidate.runs:
            run.feeds.pop(name + ':0', None)
        yield candidate


def fewer_in_functions(best, _):
    candidate = best().copy()
    for function in candidate.functions:
        prune_function(function)
    yield candidate
    for f in [f.name for f in best().functions]:
        def find(program, name=f):
            return next((g for g in program.functions if g.name == name), None)
        if find(best()):
            candidate = best().copy()
            prune_function(find(candidate))
            yield candidate
        for name in reversed([n.name for n in find(best()).nodes] if find(best()) else []):
            candidate = best().copy()
            if find(candidate) and remove_in_function(find(candidate), name):
                yield candidate
        for name in reversed([n.name for n in find(best()).nodes] if find(best()) else []):
            k = 0
            while True:
                candidate = best().copy()
                node = next((n for n in find(candidate).nodes if n.name == name), None) if find(candidate) else None
                if node is None or k >= len(node.inputs):
                    break
                if node.inputs[k][0] == '^':
                    del node.inputs[k]
                else:
                    bypass_in_function(find(candidate), name, node.inputs[k])
                k += 1
                yield candidate


def remove_in_function(function, name):
    """Whether nothing needed the node."""
    if any(v.split(':')[0] == name for _, _, v in function.results) or \
            any(i.split(':')[0] == name for n in function.nodes for i in n.inputs):
        return False
    function.nodes = [n for n in function.nodes if n.name != name]
    function.controls = [c for c in function.controls if c != name]
    for node in function.nodes:
        node.inputs = [i for i in node.inputs if i != '^' + name]
    return True


def bypass_in_function(function, name, other):
    for node in function.nodes:
        node.inputs = [other if i.startswith(name + ':') else i for i in node.inputs if i != '^' + name]
    function.results = [(n, t, other if v.startswith(name + ':') else v) for n, t, v in function.results]
    remove_in_function(function, name)


def plainer(best, _):
    """One thread, every pass."""
    for change in ('threads', 'disabled'):
        candidate = best().copy()
        setattr(candidate, change, {'threads': 1, 'disabled': ''}[change])
        yield candidate
