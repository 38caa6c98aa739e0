#!/usr/bin/env python3
"""A training graph with its variables on a parameter server's CPU and all else on a worker's GPU, against the same graph on that GPU
alone: the losses of the first steps, which must agree, and how long steps take. Needs neither TensorFlow nor NumPy.

    gpu_cluster.py --weir FILE [GRAPH.pb...] [--devices cpu,cuda] [--tf32 0] [--profile FILE.json] [--socket]

Prints a JSON object for each graph. Exit status 1: losses do not agree, or something failed.
"""
import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PS = b'/job:ps/replica:0/task:0/device:CPU:0'
NODE, NAME, OP, DEVICE = 1, 1, 2, 4  # fields of GraphDef and NodeDef


# ---- the graph ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def put_varint(value):
    out = b''
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def fields(data):
    """(number, value or None, all bytes of the field) for each field of a message; values of those that are bytes."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = varint(data, at)
        value = None
        if tag & 7 == 0:
            _, at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, value, data[begin:at]


def put_bytes(number, value):
    return put_varint(number << 3 | 2) + put_varint(len(value)) + value


def place_variables(graph):
    """The graph with its variables, but for those that stand for data, on the parameter server; and how many those are."""
    out, count = [], 0
    for number, value, whole in fields(graph):
        node = {field: v for field, v, _ in fields(value) if field in (NAME, OP, DEVICE)} if number == NODE else {}
        if node.get(OP) in (b'VarHandleOp', b'VariableV2') and not node[NAME].startswith(b'data'):
            rest = b''.join(all_of for field, _, all_of in fields(value) if field != DEVICE)
            whole = put_bytes(NODE, rest + put_bytes(DEVICE, PS))
            count += 1
        out.append(whole)
    return b''.join(out), count


# ---- the tasks ----

def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Task:
    def __init__(self, options, spec, job, *more):
        environment = {**os.environ, **({'WEIR_SAME_HOST': '0'} if options.socket else {})}
        command = [options.weir, 'server', f'--cluster={spec}', f'--job={job}', '--task=0', '--metrics-port=0', *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.metrics_port, self.port = (int(self.process.stdout.readline().split()[-1]) for _ in range(2))

    def metrics(self, pattern):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.metrics_port}/metrics', timeout=10) as page:
            lines = page.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(' ', 1) for line in lines if re.match(pattern, line))}

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


def bench(options, graph, *more):
    command = [options.weir, 'bench', graph, *more]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if made.returncode:
        raise SystemExit(f'{" ".join(command)}: {made.stderr.strip()}')
    return json.loads(made.stdout)


def compare(options, graph):
    tf32 = [f'@tf32={options.tf32}'] if 'cuda' in options.devices else []
    here = ['--devices=' + options.devices + ''.join(tf32)]
    with tempfile.NamedTemporaryFile(suffix='.pb') as placed, open(graph, 'rb') as file:
        data, count = place_variables(file.read())
        placed.write(data)
        placed.flush()
        spec = f'ps|127.0.0.1:{free_port()},worker|127.0.0.1:{free_port()}'
        ps, worker = Task(options, spec, 'ps'), Task(options, spec, 'worker', *here)
        there = [f'--target=grpc://127.0.0.1:{worker.port}']
        try:
            losses = [bench(options, g, f'--trace={options.steps}', *where)['losses'] for g, where in ((graph, here), (placed.name, there))]
            times = [bench(options, g, '--json', '--seconds=10', *more)['step_ms'] for g, more in
                     ((graph, here), (placed.name, there + ([f'--profile={options.profile}'] if options.profile else [])))]
            metrics = worker.metrics(r'weir_device_|weir_tensor_\w*bytes_total')
        finally:
            codes = [task.stop() for task in (worker, ps)]
    apart = max(abs(a - b) / max(abs(a), 1e-6) for a, b in zip(*losses))
    print(json.dumps({'graph': os.path.basename(graph)[:-3], 'variables_on_ps': count, 'losses_here': losses[0], 'losses_there': losses[1],
                      'apart': apart, 'step_ms_here': times[0], 'step_ms_there': times[1], 'worker': metrics, 'exit': codes}), flush=True)
    return count > 0 and apart <= options.tolerance and codes == [0, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('graphs', nargs='*', default=[f'{HERE}/graphs/{name}.pb' for name in ('mlp_b128', 'lenet_b128', 'alexnet_b16')])
    parser.add_argument('--weir', required=True, help='the command line tool')
    parser.add_argument('--devices', default='cpu,cuda', help='of the worker, and of the run without servers')
    parser.add_argument('--tf32', type=int, choices=(0, 1), default=0, help='whether products may round to TF32')
    parser.add_argument('--steps', type=int, default=10, help='losses that are compared')
    parser.add_argument('--tolerance', type=float, default=1e-3, help='how far losses may be apart, relative')
    parser.add_argument('--profile', help="a Chrome trace of one of the cluster's steps goes there")
    parser.add_argument('--socket', action='store_true', help='tensors go by socket, also between tasks of one machine')
    options = parser.parse_args()
    sys.exit(0 if all([compare(options, graph) for graph in options.graphs]) else 1)


if __name__ == '__main__':
    main()
