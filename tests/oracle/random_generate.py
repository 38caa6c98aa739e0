"""Draws a random program by its seed."""
import random

from random_actions import ACTIONS, make_queue, make_reference, make_resource
from random_blocks import fill
import random_families  # noqa: F401  # more actions
from random_builder import Builder
from random_graph import BOOL, FLOAT, INT32, Run, shape, type_

PASSES = ('fold', 'arithmetic', 'cse', 'unread', 'fuse', 'all', 'fold,arithmetic', 'cse,unread')
BASE = {'arithmetic', 'constant', 'hand_on', 'comparison', 'read', 'write'}


def draw(seed, output_name, kinds=('ref', 'resource'), without=(), is_calm=False):
    """The program of |seed|; |output_name|(node, index) names an output as functions do; |kinds| of variables there may be."""
    rng = random.Random(seed)
    b = Builder(rng, is_strict=rng.random() < 0.8)
    b.tag, b.output_name = seed, output_name
    # Each program has a part of all that there is: what is always together hides what it does alone.
    chosen = [n for n in ACTIONS if (n in BASE or rng.random() < 0.4) and n not in without and not (is_calm and n == 'merge')]
    b.is_calm = is_calm
    b.choices = chosen, [ACTIONS[n][0] * rng.choice((1, 1, 3)) for n in chosen]
    b.program.features = tuple(chosen)
    make_state(b, kinds, chosen)
    for _ in range(rng.randrange(1, 3)):
        placeholder(b, BOOL, ())
    if rng.random() < 0.5:
        placeholder(b, rng.choice((FLOAT, INT32)), b.draw_dims())
    fill(b, rng.randrange(3, 16))
    draw_runs(b)
    b.program.threads = rng.choice((1, 1, 2, 4))
    b.program.disabled = rng.choice(('', '', '', *PASSES))
    return b.program


def make_state(b, kinds, chosen):
    for _ in range(b.rng.randrange(1, 4)):
        if b.pick(*kinds) == 'ref':
            make_reference(b, is_reshaped=b.chance(0.1))
        else:
            make_resource(b)
    if 'queue' in chosen:
        make_queue(b)


def placeholder(b, dtype, dims):
    value = b.add('Placeholder', [], {'dtype': type_(dtype), 'shape': shape(None if b.chance(0.3) else dims)}, [(dtype, dims)])[0]
    b.root.values.append(value)
    b.placeholders = getattr(b, 'placeholders', []) + [value]


def draw_runs(b):
    """Variables are set, then runs of parts of the graph, the whole state read after each."""
    runs = b.program.runs
    starts = [v.name + '_init' for v in b.variables if b.chance(0.97)]
    state = Run([v.name + '_state:0' for v in b.variables], is_state=True)
    if starts:
        runs.append(Run([], starts))
    writers = sorted({n for touches in b.root.touched.values() for n, is_write in touches if is_write})
    # An alias that is fetched shows the variable at the end of the step, or earlier where it is sent to another task.
    values = [v for v in b.root.values if not v.alias and v not in b.placeholders]
    for _ in range(b.rng.randrange(1, 4)):
        fetches = b.rng.sample(values, min(len(values), b.rng.randrange(0, 4)))
        targets = b.rng.sample(writers, min(len(writers), b.rng.randrange(0, 3)))
        if not fetches and not targets:
            continue
        feeds = {v.ref + ':0': b.draw_array(v.dtype, v.dims) for v in b.placeholders}
        if b.chance(0.1):
            v = b.pick(*values) if values else None
            if v and v not in fetches and v.ref.split(':')[0] not in b.lowered:
                feeds[v.ref if ':' in v.ref else v.ref + ':0'] = b.draw_array(v.dtype, v.dims)
        names = [v.ref if ':' in v.ref else v.ref + ':0' for v in fetches]
        runs.append(Run(names, targets, feeds))
        if state.fetches:
            runs.append(state.copy())
