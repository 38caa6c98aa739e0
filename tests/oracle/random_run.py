"""Runs a random program in TensorFlow and in Weir, and judges: what TensorFlow itself gives differently is not compared.

TensorFlow runs a program once. Where Weir gives the same, all is well. Where not, TensorFlow runs it again and again: with one
thread, with four and with the caller's, with its nodes in other orders, from which its executor draws the order of what is
ready, and with delays here and there. Only what is the same each time counts, up to the first run that is not. Nor is it a fault to do as TensorFlow does with
its optimizer on.
"""
import random
import re

import libweir
import random_order as order
import random_tensorflow
from values import code_name, compare_values

TIMEOUT_MS = 8000
REPEATS = 9
REFUSALS = re.compile('^import|No OpKernel was registered|has inputs from different frames|is both fed and fetched|'
                      'expected type [a-z0-9]+ != |expected [a-z0-9]+ while building NodeDef')
ALIKE = {'rtol': 1e-5, 'atol': 1e-6}


class Outcome:
    """Of one run: a code, or values."""

    def __init__(self, code, message, values):
        self.code, self.message, self.values = code, message, values

    def show(self):
        if self.code:
            return f'{code_name(self.code)} {self.message[:300]}'
        return ', '.join(f'{v.tolist()}' if v is not None else 'opaque' for v in self.values)


def differs(a, b, fetches):
    """None, or how |a| differs from |b|."""
    if a.code != b.code:
        return f'{code_name(a.code)} ({a.message[:200]}), not {code_name(b.code)} ({b.message[:200]})'
    for name, x, y in zip(fetches, a.values, b.values):
        problem = compare_values(x, y, ALIKE)
        if problem:
            return f'{name}: {problem}'
    return None


def run_session(lib, program, graph_def, pool='one', target=None, timeout_ms=TIMEOUT_MS, is_plain=True):
    """Outcomes of all runs in a session of TensorFlow's client; a single one where the graph is refused."""
    try:
        session = random_tensorflow.Session(lib, graph_def, target, bool(target), is_plain)
    except random_tensorflow.Error as error:
        return [Outcome(error.code, 'import: ' + error.message, [])]
    try:
        outcomes = []
        for run in program.runs:
            try:
                outcomes.append(Outcome(0, '', session.run(run, None if target else pool, timeout_ms)))
            except random_tensorflow.Error as error:
                outcomes.append(Outcome(error.code, error.message, []))
                if error.code == random_tensorflow.DEADLINE_EXCEEDED:
                    break
        return outcomes
    finally:
        session.close()


def keep_together(program):
    """Variables that share a name share their state on one device only."""
    for node in program.nodes:
        if node.op == 'VariableV2' and node.attrs['shared_name'][1]:
            node.device = '/device:CPU:1'


def run_weir(lib, devices, program, timeout_ms):
    """Outcomes of all runs in this process, spread over |devices| where it is not None."""
    disabled = program.disabled.encode() if program.disabled else True
    if devices:
        keep_together(program)
    try:
        where = {'devices': devices.encode(), 'place': b'random:1'} if devices else {}
        graph = libweir.Graph(lib, program.encode(), threads=program.threads, passes=disabled, **where)
    except libweir.Error as error:
        return [Outcome(error.code, 'import: ' + error.message, [])]
    try:
        outcomes = []
        for run in program.runs:
            try:
                values = graph.run([graph.edge(n) for n in run.fetches], run.feeds, run.targets, timeout_ms)
                outcomes.append(Outcome(0, '', values))
            except libweir.Error as error:
                outcomes.append(Outcome(error.code, error.message, []))
                if error.code == random_tensorflow.DEADLINE_EXCEEDED:
                    break
        return outcomes
    finally:
        graph.close()


class Judge:
    """Both sides. |run|(program, timeout_ms) gives the outcomes of Weir."""

    def __init__(self, tensorflow, run, spread=None):
        """|spread|: servers of TensorFlow's, where the program runs on two tasks."""
        self.tensorflow, self.run, self.spread = tensorflow, run, spread
        self.patience_ms = TIMEOUT_MS
        self.undetermined = self.refused = self.optimized = 0

    def counts(self):
        return {'undetermined': self.undetermined, 'refused': self.refused, 'optimized': self.optimized}

    def problem(self, program, say=lambda phase: None, repeats=REPEATS):
        """None, or (run, text) of what Weir does otherwise."""
        say('tensorflow')
        want = run_session(self.tensorflow, program, program.encode(devices=False), timeout_ms=5000)
        if is_refused(program, want):
            self.refused += 1
            return None
        say('weir')
        got = self.run(program, self.patience_ms)
        at, text = first_difference(program, got, want)
        if text is None:
            return None
        # As TensorFlow's Python says, its C library does not; and a step that was refused leaves another state.
        if any('Cannot feed value of shape' in run.message for run in got[:at + 1]):
            self.refused += 1
            return None
        if at >= min(order.determined(program, want, self.spread is not None), self.determined(program, want, repeats, say)):
            self.undetermined += 1
            return None
        if self.spread and self.is_other_when_spread(program, at, want, say):
            self.undetermined += 1
            return None
        if self.is_optimized(program, at, got) or self.is_unread(program, at, got, want):
            self.optimized += 1
            return None
        if at >= self.determined_by_each(program, want, say) or order.has_race(program, want[:at + 1]):
            self.undetermined += 1
            return None
        return at, f'run {at}: {text}', got, want

    def is_other_when_spread(self, program, at, want, say):
        """Whether TensorFlow on two tasks gives something else than in one process."""
        say('start')
        outcomes = self.spread.run(self.tensorflow, program, TIMEOUT_MS)
        say('tensorflow')
        return first_difference(program, outcomes, want)[0] <= at

    def is_optimized(self, program, at, got):
        """Whether TensorFlow's own optimizer makes the same of it."""
        if at >= len(got):
            return False
        again = run_session(self.tensorflow, program, program.encode(devices=False), timeout_ms=5000, is_plain=False)
        return first_difference(program, got[:at + 1], again)[0] > at

    def is_unread(self, program, at, got, want):
        """Whether TensorFlow computes, and fails in, what nobody reads: one may wait for it, or ask for its shape, and no more."""
        if at < len(got) and not got[at].code and want[at].code and order.asked_for_shapes(program, program.runs[at], want[at]):
            return True
        is_on = 'unread' not in program.disabled and program.disabled != 'all'
        if not is_on or not any(o.code for o in want[:at + 1]):
            return False
        other = program.copy()
        other.disabled = ','.join(filter(None, (program.disabled, 'unread')))
        return first_difference(program, self.run(other, self.patience_ms), want)[0] > at

    def determined(self, program, want, repeats, say):
        """How many runs are the same, from the first on, whatever order TensorFlow takes."""
        rng, count = random.Random(1), len(want)
        for k in range(repeats):
            say('tensorflow again')
            again = order.delayed(program, rng) if k % 3 else shuffled(program)
            nodes = list(range(len(again.nodes)))
            nodes = [nodes, nodes[::-1], rng.sample(nodes, len(nodes))][k // 3 % 3]
            outcomes = run_session(self.tensorflow, again, again.encode(nodes, devices=False),
                                   pool=('four', 'caller', 'one')[k % 3], timeout_ms=5000)
            at, text = first_difference(program, outcomes, want)
            if text is not None:
                count = min(count, at)
        return count

    def determined_by_each(self, program, want, say):
        """The same, each node late in its turn: what random delays miss, and they cost less."""
        count = len(want)
        for again in order.each_delayed(program):
            say('tensorflow again')
            outcomes = run_session(self.tensorflow, again, again.encode(devices=False), pool='four', timeout_ms=5000)
            count = min(count, first_difference(program, outcomes, want)[0])
        return count


def kind_of(problem):
    """The codes on both sides: a smaller program shall fail in the same way."""
    if problem is None:
        return None
    at, _, got, want = problem
    return got[at].code if at < len(got) else -1, want[at].code


def is_refused(program, want):
    """No program for TensorFlow, or it waits for ever."""
    return len(want) < len(program.runs) or any(REFUSALS.search(o.message) for o in want)


def shuffled(program):
    """The program with the control inputs of its nodes in another order."""
    other = program.copy()
    for node in other.nodes:
        data, controls = [i for i in node.inputs if i[0] != '^'], [i for i in node.inputs if i[0] == '^']
        node.inputs = data + controls[::-1]
    return other


def first_difference(program, got, want):
    for i, run in enumerate(program.runs):
        if i >= len(got) or i >= len(want):
            return i, f'no such run: {got[-1].show()}'
        text = differs(got[i], want[i], run.fetches)
        if text:
            return i, text
    return len(program.runs), None
