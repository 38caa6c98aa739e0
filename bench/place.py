#!/usr/bin/env python3
"""Placement by cost against ten placements made by hand, and predicted against real step times, on two guard devices.

    place.py [--weir FILE] [--devices LIST] [--rounds N] [--models NAME ...] [--no-trace] [--predict] [--rates FILE]
             [--cluster] [--graphs DIR | --make DIR]

Trains small versions of alexnet, lstm_lm and wide_embedding, and a net of two branches. Every node is put on one of the two guard
devices: by hand, as the table says, or by `--place=cost`, which is told only that it must be one of them. Node times come from traces
of steps on one of them; with --no-trace from what ops compute. With --predict nothing runs, and predictions are compared. Else
placements are timed in turn, a round after another, and the shortest median counts, as it does for node times: what else the machine
does makes steps longer, never shorter. With --cluster it is two tasks of this machine, and only predictions are compared. How fast
devices are is measured once, or taken from --rates. The python that runs it must have tensorflow; or --make writes the graphs where
there is one, and --graphs takes them where there is none.
"""
import argparse
import collections
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

try:
    import make_graphs as graphs
    tf = graphs.tf
except ImportError:  # with --graphs
    graphs = tf = None

HERE = pathlib.Path(__file__).resolve().parent


def conv_net(batch):
    """The layers of alexnet, narrower, on smaller images."""
    x = graphs.pool(graphs.conv(graphs.data([batch, 64, 64, 3]), 24, 11, 2), 3, 2)
    x = graphs.pool(graphs.conv(x, 48, 5), 3, 2)
    x = graphs.conv(graphs.conv(graphs.conv(x, 64, 3), 48, 3), 48, 3)
    return graphs.xent(graphs.dense(graphs.dense(graphs.dense(graphs.flat(x), 256), 256), 100, False), 100)


def branches(batch, width=384, depth=4):
    """Two stacks of layers, which meet at the end."""
    ends = []
    for _ in range(2):
        x = graphs.data([batch, width])
        for _ in range(depth):
            x = graphs.dense(x, width)
        ends.append(x)
    return graphs.xent(graphs.dense(tf.concat(ends, 1), 10, False), 10)


MODELS = {'alexnet': (lambda: conv_net(8), 'momentum', ''), 'lstm_lm': (lambda: graphs.lstm_lm(8, 5, 96, 1000), 'sgd', ''),
          'wide_embedding': (lambda: graphs.wide_embedding(256, 20000), 'adagrad', ''), 'branches': (lambda: branches(192), 'sgd', '')}

# ---- placements by hand ----


def forward_place(graph):
    """For each node, how far into the forward pass it belongs, from 0 to 1: gradients with what they are of, updates with their
    variable."""
    names = [node.name for node in graph.node]
    forward = [n for n in names if not re.match(r'gradients|\w+/update|\w+/learning|init|step|save|loss$', n)]
    order = {name: i / max(len(forward) - 1, 1) for i, name in enumerate(forward)}
    place = {}
    for name in names:
        of = re.match(r'gradients/(.+?)_grad/', name) or re.search(r'/update_(\w+)/', name) or re.match(r'gradients/(.+)', name)
        base = of.group(1) if of else name
        while base not in order and '/' in base:
            base = base.rsplit('/', 1)[0]
        place[name] = order.get(base, 1.0)
    return place


def is_variable(node):
    return node.op in ('VarHandleOp', 'ReadVariableOp', 'AssignVariableOp') or node.op.startswith('Resource')


def with_state(graph, where):
    """Nodes that share a variable or an array, or are to be together, are where the first of them is."""
    with tf.Graph().as_default() as built:
        tf.import_graph_def(graph, name='')
    owner = {}

    def find(name):
        while owner.setdefault(name, name) != name:
            name = owner[name]
        return name
    for op in built.get_operations():
        others = [value.op.name for value in op.inputs if value.dtype == tf.resource]
        others += [group.decode()[5:] for group in op.colocation_groups()]
        for other in others:
            owner[find(op.name)] = find(other)
    return {name: where[find(name)] for name in where}


def by_hand(graph):
    place = forward_place(graph)

    def split(choose):
        return with_state(graph, {node.name: int(bool(choose(node))) for node in graph.node})
    return {'all on 0': split(lambda n: False),
            'all on 1': split(lambda n: True),
            'last 3/4 on 1': split(lambda n: place[n.name] > 0.25),
            'last half on 1': split(lambda n: place[n.name] > 0.5),
            'last 1/4 on 1': split(lambda n: place[n.name] > 0.75),
            'last tenth on 1': split(lambda n: place[n.name] > 0.9),
            'first tenth on 1': split(lambda n: place[n.name] < 0.1),
            'variables on 1': split(is_variable),
            'backward on 1': split(lambda n: n.name.startswith('gradients')),
            'layers in turn': split(lambda n: int(place[n.name] * 12) % 2)}


def write(graph, device, device_of, path):
    copy = tf.compat.v1.GraphDef()
    copy.CopyFrom(graph)
    for node in copy.node:
        node.device = device % device_of(node.name)
    path.write_bytes(copy.SerializeToString())
    return path


# ---- running ----


class Weir:
    def __init__(self, args, folder):
        self.args, self.folder, self.rates = args, folder, args.rates
        if not self.rates:
            self.rates = folder / 'rates'
            self.rates.write_text(self.output('place', '--print-rates', *self.of_rates()))

    def output(self, verb, *options):
        command = [self.args.weir, verb, '--threads=1', *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'{" ".join(map(str, command))}\n{done.stderr}')
        return done.stdout

    def close(self):
        pass

    def of_rates(self):
        return [f'--devices={self.args.devices}']

    def real(self):
        return [f'--devices={self.args.devices}', f'--rates={self.rates}']

    predicted = real

    def time(self, graph, *options):
        steps = ['--json', '--steps=7', '--seconds=0.5', '--warmup=1']
        return json.loads(self.output('bench', graph, *steps, *options))['step_ms']

    def predict(self, graph, *options):
        return json.loads(self.output('place', graph, '--json', *self.predicted(), *options))['step_ns'] / 1e6

    def sample(self, graph):
        """For each node of a step its time and an event: the median of a few steps."""
        file = self.folder / 'sample.json'
        found = collections.defaultdict(list)
        for _ in range(3):
            self.output('bench', graph, '--json', '--steps=3', '--seconds=0.1', '--warmup=1', *self.real(), f'--profile={file}')
            for name, taken in times_of_nodes(json.loads(file.read_text())['traceEvents']).items():
                found[name].append(taken)
        return {name: sorted(taken, key=lambda t: t[0])[len(taken) // 2] for name, taken in found.items()}

    def trace(self, samples):
        """A trace with the times of the shortest of some samples."""
        best = min(samples, key=lambda sample: sum(total for total, _, _ in sample.values()))
        events = [dict(event, ts=k * total / visits, dur=total / visits, tid=tid)
                  for tid, (total, event, visits) in enumerate(best.values()) for k in range(visits)]
        path = self.folder / 'trace.json'
        path.write_text(json.dumps({'traceEvents': events}))
        return path


class Cluster(Weir):
    """Two tasks of this machine, each with a thread."""

    def __init__(self, args, folder):
        ports = [free_port() for _ in range(2)]
        spec = 'worker|' + ';'.join(f'localhost:{port}' for port in ports)
        self.target = f'--target=grpc://localhost:{ports[0]}'
        command = [str(args.weir), 'server', f'--cluster={spec}', '--job=worker', '--threads=1']
        self.servers = [subprocess.Popen([*command, f'--task={i}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                        for i in range(2)]
        super().__init__(args, folder)

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait()

    def of_rates(self):
        return [self.target, '--tasks=/job:worker/replica:0/task:0,/job:worker/replica:0/task:1']

    def real(self):
        return [self.target]

    def predicted(self):
        return [f'--cluster={self.rates}']


def free_port():
    with socket.socket() as found:
        found.bind(('localhost', 0))
        return found.getsockname()[1]


def times_of_nodes(events):
    """For each node its time in all, one of its events, and how many there are."""
    found = {}
    for event in (e for e in events if e['ph'] == 'X'):
        total, first, visits = found.get(event['args']['name'], (0, event, 0))
        found[event['args']['name']] = total + event['dur'], first, visits + 1
    return found


def make(name, folder, device):
    """Writes the model's graph under every placement by hand, and once with either device allowed."""
    graph = graphs.build(name, MODELS)
    folder.mkdir(parents=True, exist_ok=True)
    for key, where in by_hand(graph).items():
        write(graph, device, lambda n, where=where: where[n], folder / f'{key.replace("/", " of ")}.pb')
    write(graph, device, lambda n: '*', folder / 'by cost.pb')


def evaluate(weir, name, folder, args):
    paths = {path.stem: path for path in sorted(folder.glob('*.pb'), key=lambda p: (p.stem == 'by cost', p.stem))}
    hand = [key for key in paths if key != 'by cost']
    if args.cluster:  # masters do not place by cost
        del paths['by cost']
    options = {key: ['--place=graph'] for key in paths}
    samples, trace = [], None
    is_traced = not (args.no_trace or args.predict)
    if is_traced and not args.cluster:
        trace = weir.trace([weir.sample(paths['all on 0']) for _ in range(3)])
    if not args.cluster:
        options['by cost'] = [f'--place=cost:{trace}' if trace else '--place=cost']
    times = {key: [] for key in paths}
    for _ in range(0 if args.predict else args.rounds):
        for key, path in paths.items():
            times[key].append(weir.time(path, *weir.real(), *options[key]))
        if is_traced and args.cluster:  # in turn with the rest: the machine is not always as fast
            samples += [weir.sample(paths[key]) for key in ('all on 0', 'all on 1')]
    if samples:
        trace = weir.trace(samples)
    print(f'\n{name}\n{"":18} {"predicted":>10} {"real":>10} {"ratio":>7}')
    predicted = {key: weir.predict(path, *options[key], *([f'--trace={trace}'] if trace else [])) for key, path in paths.items()}
    for key in paths:
        real = f'{min(times[key]):7.2f} ms {predicted[key] / min(times[key]):7.2f}' if times[key] else ''
        print(f'{key:18} {predicted[key]:7.2f} ms {real}')
    if args.cluster:
        return
    compared = predicted if args.predict else {key: min(times[key]) for key in times}
    best = min(hand, key=compared.get)
    print(f'by cost takes {compared["by cost"] / compared[best]:.2f} times the best by hand, {best!r}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weir', default=HERE.parent / 'build' / 'dev' / 'cli' / 'weir')
    parser.add_argument('--devices', default='cpu,guard:2@speed=0.25@bandwidth=1e9')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--models', nargs='+', default=list(MODELS), choices=list(MODELS))
    parser.add_argument('--no-trace', action='store_true')
    parser.add_argument('--predict', action='store_true')
    parser.add_argument('--rates', type=pathlib.Path)
    parser.add_argument('--cluster', action='store_true')
    parser.add_argument('--graphs', type=pathlib.Path)
    parser.add_argument('--make', type=pathlib.Path)
    args = parser.parse_args()
    for name in args.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (args.graphs or args.make or pathlib.Path(temporary)) / name
            if not args.graphs:
                make(name, folder, '/job:worker/task:%s' if args.cluster else '/device:GUARD:%s')
            if args.make:
                continue
            weir = (Cluster if args.cluster else Weir)(args, pathlib.Path(temporary))
            try:
                evaluate(weir, name, folder, args)
            finally:
                weir.close()


if __name__ == '__main__':
    main()
