#!/usr/bin/env python3
"""How soon TensorFlow's own servers and MonitoredTrainingSession go on after the faults that Weir's are met with: the same world, other programs.

    peer.py --rounds 5 --only kill_ps,cut_ps    asynchronous training, one fault a round; a table as chaos.py --table makes it

Times are from a fault to the first program that says it lost a server, and from its end, when all servers listen again (those of TensorFlow
need seconds for that, which do not count), to the last program that goes on.
"""
import argparse
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time

import faults
import world
from chaos import Round, delay_of, print_table, Result

KINDS = ['kill_ps', 'kill_worker', 'cut_ps', 'cut_worker']
STEPS_AFTER = 60  # so that training is not over when it goes on
VARIABLES, ELEMENTS, SAVE_EVERY, PAUSE = 5, 1000, 10, 0.003  # as tests/programs/chaos.c has them
PATIENCE = 300


class PeerWorld(world.World):
    """Servers and programs are of TensorFlow, in Python."""

    def start_server(self, job, i):
        port = self.ports[job, i][self.is_relayed]
        command = [sys.executable, __file__, 'serve', self.spec, job, str(i), str(port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet())
        self.servers[job, i] = process
        if self.programs:  # else all start at once
            self.wait(lambda: listens(port), f'{job}:{i}')

    def start_program(self, i):
        for job, j in self.servers:
            self.wait(lambda port=self.ports[job, j][self.is_relayed]: listens(port), f'{job}:{j}')
        super().start_program(i)

    def command_of(self, i):
        return [sys.executable, __file__, 'train', self.targets[i], i, self.spec, self.steps, self.directory]


def quiet():
    return os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3', 'CUDA_VISIBLE_DEVICES': ''}


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


# ---- what the processes run ----

def cluster_of(spec):
    return {job: tasks.split(';') for job, _, tasks in (part.partition('|') for part in spec.split(','))}


def serve(spec, job, task, port):
    import tensorflow as tf
    cluster = tf.train.ClusterSpec(cluster_of(spec)).as_cluster_def()
    definition = tf.compat.v1.train.ServerDef(cluster=cluster, job_name=job, task_index=int(task), protocol='grpc', port=int(port))
    tf.distribute.Server(definition, config=tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)).join()


class ToldLosses(logging.Handler):
    """The library says in its log that it makes the session anew."""

    def emit(self, record):
        if record.getMessage().startswith('An error was raised'):
            print('lost a server', flush=True)


def train(target, worker, spec, steps, directory):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_v2_behavior()
    worker = int(worker)

    class Tell(tf1.train.SessionRunHook):
        """What chaos.py reads."""
        is_first = True

        def after_create_session(self, session, coord):
            if not self.is_first:
                print('going on at ', flush=True)
            self.is_first = False

        def before_run(self, run_context):
            return tf1.train.SessionRunArgs(tf1.train.get_global_step())

        def after_run(self, run_context, run_values):
            print(f'at {run_values.results}', flush=True)
            time.sleep(PAUSE)

    with tf1.device(tf1.train.replica_device_setter(cluster=cluster_of(spec), worker_device=f'/job:worker/task:{worker}')):
        variables = [tf1.get_variable(f'v{i}', [ELEMENTS], initializer=tf1.zeros_initializer()) for i in range(VARIABLES)]
        loss = tf.add_n([-tf.reduce_sum(v) for v in variables])
        step = tf1.train.GradientDescentOptimizer(1.0).minimize(loss, tf1.train.get_or_create_global_step())
    config = tf1.ConfigProto(device_filters=['/job:ps', f'/job:worker/task:{worker}'])
    logging.getLogger('tensorflow').addHandler(ToldLosses())
    tf1.logging.set_verbosity(tf1.logging.INFO)
    hooks = [Tell(), tf1.train.StopAtStepHook(last_step=int(steps))]
    with tf1.train.MonitoredTrainingSession(target, worker == 0, directory, hooks=hooks, config=config, save_checkpoint_secs=None,
                                            save_checkpoint_steps=SAVE_EVERY, save_summaries_steps=None, log_step_count_steps=None) as session:
        while not session.should_stop():
            session.run(step)


# ---- playing ----

def play(drawn):
    """A round of one fault; training need not come to its end."""
    fault, began = drawn.faults[0], time.time()
    with tempfile.TemporaryDirectory(prefix='weir_peer.') as directory:
        with PeerWorld(directory, drawn.ps, drawn.workers, 10**6, False, False, drawn.is_relayed) as played:
            failure, delay = None, None
            try:
                played.wait_for_step(fault.step)
                met = played.note_fault(fault.kind)
                faults.KINDS[fault.kind](played, fault.process, fault.seconds)
                ended = time.time()
                played.wait(lambda: goes_on(played, met), 'training that goes on')
                delay = delay_of(played.seen(), met, ended)
            except world.Failure as e:
                failure = str(e)
            lines = played.seen()
    recoveries = sum(line.text.startswith('going on at ') for line in lines)
    print(f'seed {drawn.seed}, {drawn.ps} ps, {fault.kind} at {fault.step}: {failure or delay}', flush=True)
    return Result(failure, 0, recoveries, 0, time.time() - began, [delay] if delay else [])


def goes_on(played, met):
    """Some steps later each program that lost a server has found it again."""
    lines = [line for line in played.seen() if line.time >= met]
    since = {}
    for line in lines:
        if line.text.startswith('lost'):
            since[line.worker] = None
        elif line.text.startswith('at ') and line.worker is not None:
            since[line.worker] = (since.get(line.worker) or 0) + 1
    return len(since) == played.workers and all((count or 0) >= STEPS_AFTER for count in since.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', default=','.join(KINDS), help='kinds of faults, separated by commas')
    options = parser.parse_args()
    world.PATIENCE = PATIENCE
    seeds = range(options.seed, options.seed + options.rounds)
    print_table({kind: [play(Round(seed, [kind], 1)) for seed in seeds] for kind in options.only.split(',')})


if __name__ == '__main__':
    actions = {'serve': serve, 'train': train}
    if len(sys.argv) > 1 and sys.argv[1] in actions:
        actions[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main())
