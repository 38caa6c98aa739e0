"""Steps that fail, time out, are cancelled, lose their client or their session, many at a time, against two tasks of Weir.

    WEIR_BUILD=build/asan tests/cluster/stress.py --steps 100000

prints how they ended and what memory the tasks take, and fails when a task crashed, hung, kept something of a step, or a sanitizer
had something to say. WEIR_PERTURB=SEED perturbs the tasks.

What a task has allocated when its clients have gone must be the same after all of the steps as after half of them. Resident memory
says less: it holds pages that the C library keeps, whose number settles only after many steps.
"""
import argparse
import collections
import heapq
import os
import pathlib
import random
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]
os.environ.setdefault('ASAN_OPTIONS', 'quarantine_size_mb=16')  # else what was freed hides what was not
import grpc  # noqa: E402

import clusters  # noqa: E402
from clusters import tf, tf1  # noqa: E402
from messages import Client  # noqa: E402

IN_FLIGHT = 48
CLIENTS = 4
STEPS_A_CLIENT = 400  # then it is lost, or its session is closed, with steps under way
# Bytes that a task may have more after the second half of the steps: lists of free blocks that threads keep. ThreadSanitizer's own
# count wanders, up and down, when threads end.
SLACK = 1 << 20 if clusters.IS_THREAD_SANITIZED else 256 << 10
GOOD, BAD = 10.0, -1.0  # the logarithm of what is fed
FATES = ['left alone', 'fails', 'fails', 'is late', 'is late', 'is cancelled', 'is cancelled', 'in parts', 'abandoned']
# No step may end otherwise, whatever its fate: a lost session or client cancels those of others.
CODES = {'OK', 'INVALID_ARGUMENT', 'CANCELLED', 'DEADLINE_EXCEEDED', 'ABORTED', 'UNAVAILABLE'}


def checked_log(x):
    return tf.debugging.check_numerics(tf.math.log(x), 'stress')


def build():
    """A graph over both tasks, with all that steps are made of; the names of its fetches, and of what never comes."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name='x')
        with tf.device('/job:worker/task:0'):
            wide = tf.add_n([tf.exp(checked_log(x - i)) for i in range(5)])
            loop = tf1.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y + checked_log(x - tf.cast(i, tf.float32))), (0, x),
                                  parallel_iterations=3)[1]
            branch = tf1.cond(x < 100, lambda: checked_log(x), lambda: x)
            call = tf.function(lambda y: tf.function(checked_log)(y) + 1)(x)
            never = tf.queue.FIFOQueue(1, tf.float32, shared_name='never').dequeue()
        with tf.device('/job:worker/task:1'):
            elsewhere = checked_log(x) * 2
            never_there = tf.queue.FIFOQueue(1, tf.float32, shared_name='never').dequeue()
        with tf.device('/job:worker/task:0'):
            spanning = elsewhere + 1
        fetches = [t.name for t in (wide, loop, branch, call, elsewhere, spanning)]
        return graph.as_graph_def(), fetches, [never.name, never_there.name]


class Stress:
    def __init__(self, target, seed):
        self.target = target
        self.chance = random.Random(seed)
        self.graph, fetches, never = build()
        # Few signatures, so that steps are run and not made: those of the second kind do not end by themselves.
        self.fetches = [fetches, *([fetch] for fetch in fetches)]
        self.never = [fetches + never, *([name] for name in never)]
        self.room = threading.Semaphore(IN_FLIGHT)
        self.mu = threading.Lock()
        self.ended = collections.Counter()  # guarded by mu
        self.to_cancel = []  # (when, tie, call)
        self.clients = [self.connect() for _ in range(CLIENTS)]
        self.count = 0

    def connect(self):
        client = Client(self.target, options=[('grpc.use_local_subchannel_pool', 1)])
        handle = client.CreateSession(graph_def=self.graph).session_handle
        return client, handle

    def replace(self, i):
        """Loses a client, or closes its session, while steps are under way."""
        client, handle = self.clients[i]
        self.clients[i] = self.connect()
        if self.chance.random() < 0.5:
            client.close()
        self.clients[i][0].CloseSession(session_handle=handle)
        client.close()

    def start(self):
        fate = self.chance.choice(FATES)
        client, handle = self.chance.choice(self.clients)
        is_ended = fate in ('is late', 'is cancelled')
        fetch = self.chance.choice(self.never if is_ended and self.chance.random() < 0.5 else self.fetches)
        moment = self.chance.choice([0.001, 0.005, 0.02]) * self.chance.random()
        feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(BAD if fate == 'fails' else GOOD)}]
        if fate in ('in parts', 'abandoned'):
            call = client.start('PartialRunSetup', session_handle=handle, feed=['x:0'], fetch=fetch)
        else:
            timeout = 0.001 + moment if fate == 'is late' else clusters.PATIENCE_MS / 1000
            call = client.start('RunStep', timeout=timeout, session_handle=handle, feed=feed, fetch=fetch)
        if fate == 'is cancelled':
            heapq.heappush(self.to_cancel, (time.monotonic() + moment, self.count, call))
        self.count += 1
        if fate != 'in parts':
            call.add_done_callback(self.note)
            return

        def go_on(setup):
            try:
                client.start('RunStep', session_handle=handle, partial_run_handle=setup.result().partial_run_handle, feed=feed,
                             fetch=fetch).add_done_callback(self.note)
            except (grpc.RpcError, grpc.FutureCancelledError, ValueError):  # refused, or the channel is closed
                self.note(setup)
        call.add_done_callback(go_on)

    def note(self, call):
        with self.mu:
            self.ended[call.code().name] += 1
        self.room.release()

    def cancel_due(self):
        while self.to_cancel and self.to_cancel[0][0] <= time.monotonic():
            heapq.heappop(self.to_cancel)[2].cancel()

    def run(self, steps, report=lambda stress: None, every=5000):
        while self.count < steps:
            self.cancel_due()
            if not self.room.acquire(timeout=0.002):
                continue
            self.start()
            if self.count % STEPS_A_CLIENT == 0:
                self.replace(self.chance.randrange(CLIENTS))
            if self.count % every == 0:
                report(self)
        end = time.monotonic() + clusters.PATIENCE_MS / 1000
        for _ in range(IN_FLIGHT):
            while not self.room.acquire(timeout=0.002):
                self.cancel_due()
                assert time.monotonic() < end, f'steps do not end: {self.ended}'
        for client, handle in self.clients:
            client.CloseSession(session_handle=handle)
            client.close()
        assert set(self.ended) <= CODES, self.ended
        return self.ended


def resident(task):
    status = pathlib.Path(f'/proc/{task.process.pid}/status').read_text()
    return int(status.split('VmRSS:')[1].split()[0]) // 1024


def allocated_at_rest(task):
    """Bytes that the task has when its clients have gone: threads and connections end a little later than they do."""
    readings = []
    for _ in range(20):
        time.sleep(0.2)
        readings.append(int(task.metrics()['weir_heap_bytes']))
    return min(readings)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--steps', type=int, default=100000)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    os.environ.setdefault('GLIBC_TUNABLES', 'glibc.malloc.tcache_count=0')  # else what a thread keeps counts as allocated
    cluster = clusters.Cluster({'worker': 2})
    tasks = cluster.tasks.values()
    began = time.monotonic()
    before = 0

    def report(stress):
        memory = ', '.join(f'{resident(task)} MB' for task in tasks)
        print(f'{time.monotonic() - began:7.1f} s  {before + stress.count:7} steps  {memory}  {dict(stress.ended)}', flush=True)
        assert cluster.is_alive(), [task.errors()[-6000:] for task in tasks]

    allocated = []
    for half in range(2):
        stress = Stress(cluster.tasks['worker', 0].address, args.seed + half)
        stress.run(args.steps // 2, report)
        before += stress.count
        cluster.wait_until_idle()
        allocated.append([allocated_at_rest(task) for task in tasks])
        print(f'allocated after {before} steps, at rest: {allocated[-1]} bytes', flush=True)
    cluster.stop()
    assert all(last <= first + SLACK for first, last in zip(*allocated)), allocated
    print('no findings')


if __name__ == '__main__':
    main()
