"""Clusters of `weir server`, or of TensorFlow's own servers, on this machine: what benchmarks compare."""
import json
import os
import signal
import socket
import subprocess
import sys

TENSORFLOW_TASKS = '''
import json, os, sys
import tensorflow as tf  # once: it takes seconds
cluster = json.loads(sys.argv[1])
for job, i in [(job, i) for job in cluster for i in range(len(cluster[job]))]:
    if os.fork() == 0:
        server = tf.distribute.Server(cluster, job_name=job, task_index=i)
        os.write(1, b'ready' + bytes([10]))
        server.join()
os.wait()
'''


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(('127.0.0.1', 0))
    addresses = ['127.0.0.1:%d' % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class Cluster:
    """Parameter servers and workers, each a process. |servers|: 'weir', whose command is |weir|, or 'tensorflow'. |options| are Weir's."""

    def __init__(self, servers, weir, ps_count, worker_count, *options):
        addresses = free_addresses(ps_count + worker_count)
        self.ps, self.workers = addresses[:ps_count], addresses[ps_count:]
        self.processes = []
        try:
            if servers == 'weir':
                spec = 'ps|' + ';'.join(self.ps) + ',worker|' + ';'.join(self.workers)
                for job, task in [('ps', i) for i in range(ps_count)] + [('worker', i) for i in range(worker_count)]:
                    self.start([weir, 'server', '--cluster=' + spec, '--job=' + job, '--task=%d' % task, *options], 1)
            else:
                spec = {'ps': self.ps, 'worker': self.workers}
                self.start([sys.executable, '-c', TENSORFLOW_TASKS, json.dumps(spec)], len(addresses))
        except BaseException:
            self.stop()
            raise

    def start(self, command, tasks):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(process)
        for _ in range(tasks):
            if not process.stdout.readline():  # a line once it listens
                raise RuntimeError('a server does not start: %s' % command)

    def stop(self):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)  # with what it forked
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
