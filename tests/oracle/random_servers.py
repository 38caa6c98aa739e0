"""Weir's servers that TensorFlow's client drives: one, or two tasks with the nodes placed at random on both."""
import os
import random
import re
import select
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..'))

import random_run
from random_tensorflow import DEADLINE_EXCEEDED
from ports import free_ports

# What must be where its variable is: the placer sees to that.
STAYS = re.compile('^(Variable|VarHandle|ReadVariable|Assign|Scatter|Resource|Apply|Queue|FIFOQueue|CountUpTo|StridedSliceAssign|'
                   'Stack|TensorArray|Ref|Destroy|Placeholder|While|StatelessWhile|If|StatelessIf|Case|StatelessCase|.*Call)')


class TensorFlowServers:
    """Two tasks of TensorFlow's. They start when they are first asked, which takes long."""

    def __init__(self):
        self.cluster = None

    def run(self, lib, program, timeout_ms):
        if self.cluster is None:
            sys.path.insert(0, os.path.join(HERE, '..', 'cluster'))
            from clusters import TensorFlowCluster
            self.cluster = TensorFlowCluster({'worker': 2})
        return random_run.run_session(lib, program, program.encode(), target=self.cluster.tasks['worker', 0].target,
                                      timeout_ms=timeout_ms)


class Servers:
    def __init__(self, weir, count):
        self.weir, self.count = weir, count
        self.tasks = []
        self.start()

    def start(self):
        self.stop()
        addresses = [f'127.0.0.1:{port}' for port in free_ports(self.count)]
        spec = 'worker|' + ';'.join(addresses)
        for i in range(self.count):
            self.tasks.append(subprocess.Popen([self.weir, 'server', f'--cluster={spec}', '--job=worker', f'--task={i}'],
                                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        for task in self.tasks:
            ready, _, _ = select.select([task.stdout], [], [], 60)
            if not ready or not task.stdout.readline():
                raise SystemExit('a server did not start')
        self.target = 'grpc://' + addresses[0]

    def stop(self):
        for task in self.tasks:
            task.kill()
            task.wait()
        self.tasks = []

    def dead(self):
        return [i for i, task in enumerate(self.tasks) if task.poll() is not None]

    def run(self, lib, program, timeout_ms):
        """Outcomes of the program; one more that no program has where a server died of it."""
        if self.count > 1:
            place(program)
        outcomes = random_run.run_session(lib, program, program.encode(), target=self.target, timeout_ms=timeout_ms,
                                          is_plain=program.disabled == 'all' or 'unread' in program.disabled)  # all or none
        if self.dead():
            what = f'task {self.dead()[0]} died with {self.tasks[self.dead()[0]].returncode}'
            self.start()
            return [random_run.Outcome(-1, what, [])]
        if outcomes[-1].code == DEADLINE_EXCEEDED:
            self.start()  # the next program finds nothing of this one
        return outcomes


def place(program):
    """Nodes on tasks at random; the same each time for the same nodes."""
    for node in program.nodes:
        free = not STAYS.match(node.op) and ('type_', 20) not in node.attrs.values() and not node.name.endswith('_state')
        rng = random.Random(node.name)
        node.device = f'/job:worker/task:{rng.randrange(2)}' if free and rng.random() < 0.8 else node.device
        if node.op in ('VariableV2', 'VarHandleOp', 'FIFOQueueV2'):  # all on one: a call may take several
            node.device = '/job:worker/task:1'
