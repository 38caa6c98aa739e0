"""The world of random_peers.py: two tasks, an honest client of each, and what is judged whatever other peers do."""
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import socket
import tempfile
import threading
import time

import grpc

import clusters
import messages
import peer_lies
from clusters import tf
from messages import Client
from peer_lies import ANY_SHAPE, FLOAT, UINT8, Graph
from ports import free_ports

BOUND = 20  # seconds in which a server answers an honest client: hundreds of times what it takes
MOST_MEMORY = 512 << 20  # resident, of a task, beside what steps have a right to
SECRET_SIZE = 1 << 20
STRANGER = [('grpc.use_local_subchannel_pool', 1)]  # a connection of one's own
# A client of one task: it is neither to wait for the others nor to be told lies by them.
ALONE = messages.config_pb2.ConfigProto(device_filters=['/job:nobody'])


class Failure(Exception):
    pass


class World:
    def __init__(self, seed, bound=BOUND):
        chance = peer_lies.seeded('world', seed)
        self.bound = bound
        self.leave = threading.Event()  # all peers are to go
        self.failures = []
        self.mu = threading.Lock()
        self.secret = os.urandom(32)
        self.request_ids = {}  # of whom → numbers, in order
        self.long_count = 0
        self.granted = 0  # bytes that steps have a right to
        self.step_ids = set()  # that liars used: no master cleans up after them
        self.folder = tempfile.TemporaryDirectory(prefix='weir_peers_')
        self.scratch = pathlib.Path(self.folder.name, 'scratch')  # of peers; all else is of the servers
        self.scratch.mkdir()
        self._add_files()
        ports = free_ports(2)
        self.relay = LyingRelay(self, f'127.0.0.1:{ports[1]}')
        threads = chance.choice([1, 2])
        self.tasks = []
        for i in range(2):
            home = pathlib.Path(self.folder.name, f'task{i}')
            home.mkdir()
            # The first task knows the second by the address of the relay, which stands before it.
            addresses = [f'127.0.0.1:{ports[0]}', self.relay.address if i == 0 else f'127.0.0.1:{ports[1]}']
            self.tasks.append(clusters.Task(f'--cluster=worker|{";".join(addresses)}', '--job=worker', f'--task={i}',
                                            f'--threads={threads}', folder=home))
        self.honest = [Honest(self, task) for task in self.tasks]
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.is_over = threading.Event()
        self.watcher.start()
        for honest in self.honest:
            honest.start()

    def _add_files(self):
        """Files that a peer may name: what each can do to who reads it differs."""
        (self.scratch / 'file').write_bytes(b'some text\n' * 1000)
        os.mkfifo(self.scratch / 'fifo')
        (self.scratch / 'folder').mkdir()
        with open(self.scratch / 'sparse', 'wb') as f:
            f.truncate(1 << 43)
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(self.scratch / 'socket'))
        self.files = [str(self.scratch / name) for name in ('file', 'fifo', 'folder', 'sparse', 'socket', 'nobody')]
        self.writable_files = [*self.files[1:3], '/dev/full']
        self.files += ['/proc/self/maps', '/proc/kmsg', '/']
        self.devices = ['/dev/zero', '/dev/null', '/dev/full', '/dev/urandom']

    # ---- for peers ----

    def draw_task(self, chance):
        return chance.choice(self.tasks)

    def fail(self, text):
        with self.mu:
            self.failures.append(text)

    def look(self, data):
        """Whatever a peer is told must not have the secret in it: it is planted in pages of nothing else."""
        if self.secret[:16] in data:
            self.fail('a peer was told what is in the memory of a task')

    def note_id(self, of, number):
        with self.mu:
            if number:
                self.request_ids.setdefault(of, []).append(number)

    def look_at_request(self, of, method, data):
        self.look(data)
        try:
            request = messages.CLASSES[method + 'Request'].FromString(data)
        except (KeyError, ValueError):
            return
        if 'request_id' in request.DESCRIPTOR.fields_by_name and method != 'MarkRecvFinished':  # which names an earlier one
            self.note_id(of, request.request_id)

    def take_long(self):
        """Whether a peer may keep the machine busy for minutes: one of a scene, for the machine has others to serve."""
        with self.mu:
            self.long_count += 1
            return self.long_count == 1

    def grant(self, size):
        """A step has tensors of |size| bytes together, which it may also have twice on the way."""
        with self.mu:
            self.granted += 2 * size

    # ---- memory ----

    def writable(self, task):
        for line in pathlib.Path(f'/proc/{task.process.pid}/maps').read_text().splitlines():
            span, rights = line.split()[:2]
            begin, end = (int(x, 16) for x in span.split('-'))
            if rights.startswith('rw') and '[v' not in line and end - begin < 256 << 20:
                yield begin, end

    def read_memory(self, task, address, size):
        with open(f'/proc/{task.process.pid}/mem', 'rb', buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)

    def find(self, task, data):
        """Where in a task's memory |data| begins, at a multiple of 64: a tensor's."""
        for begin, end in self.writable(task):
            try:
                content = self.read_memory(task, begin, end - begin)
            except (OSError, ValueError, OverflowError):
                continue
            at = content.find(data)
            while at >= 0 and (begin + at) % 64:
                at = content.find(data, at + 1)
            if at >= 0:
                return begin + at
        return None

    def plant(self, task, data):
        """Keeps |data| in a task's memory, as any client can, and says where."""
        marked = os.urandom(32) + data
        assert len(marked) <= SECRET_SIZE
        keep(task, marked.ljust(SECRET_SIZE, b'\0'), self.bound)
        address = self.find(task, marked)
        return address + 32 if address else None

    # ---- judging ----

    def _watch(self):
        while not self.is_over.wait(0.05):
            for i, task in enumerate(self.tasks):
                if not task.is_alive():
                    self.fail(f'task {i} is dead: {task.process.returncode} {task.errors()[-3000:]}')
                    return
                try:
                    memory = task.memory()
                except (OSError, IndexError):  # it has just ended
                    continue
                if memory > MOST_MEMORY + self.granted:
                    self.fail(f'task {i} has taken {memory >> 20} MB, of which steps asked for {self.granted >> 20}')
                    task.process.kill()
                    return

    def check(self):
        with self.mu:
            if self.failures:
                raise Failure(self.failures[0])

    def probe(self):
        """Honest clients are answered now."""
        for honest in self.honest:
            honest.probe()
        self.check()

    def end(self, actions):
        """Waits for the peers' actions; then judges what they leave."""
        for action in actions:
            while not action.result.done() and not self.failures:
                concurrent.futures.wait([action.result], timeout=0.1)
            self.check()
        self.probe()  # while those that stay are still there
        self.leave.set()
        for action in actions:
            action.stayed.result(timeout=3 * self.bound)
        self.check()
        self._wait_until_idle()
        self.probe()
        self._check_ids()
        self._stop()

    def _wait_until_idle(self):
        with contextlib.ExitStack() as stack:
            for honest in self.honest:
                stack.enter_context(honest.turn)
                honest.handle = None
            for task in self.tasks:
                self._clean_up(task)

    def _clean_up(self, task):
        """What peers leave that nobody else can end, ends; and then nothing of them runs."""
        client = Client(task.address, options=STRANGER)
        client.Reset(container=['of nobody'], timeout=self.bound)
        for step in list(self.step_ids):
            client.CleanupGraph(step_id=step, timeout=self.bound)
        client.close()
        names = ['weir_steps_open', 'weir_graphs_running', 'weir_rpc_calls_running']
        end = time.monotonic() + self.bound
        while True:
            self.check()
            held = {name: int(value) for name, value in task.metrics().items() if name in names}
            if not any(held.values()):
                return
            if time.monotonic() > end:
                raise Failure(f'steps of peers that have gone do not end on {task.address}: {held}')
            time.sleep(0.2)  # asking is no light work for a task that has much memory

    def _check_ids(self):
        for of, ids in self.request_ids.items():
            if len(set(ids)) < len(ids):
                raise Failure(f'two requests of {of} have one number')
            if peer_lies.is_predictable(ids):
                raise Failure(f'numbers of requests can be foreseen: {of} {ids[:5]}')

    def _stop(self):
        for honest in self.honest:
            honest.stop()
        self.is_over.set()
        self.watcher.join()
        self.check()
        for task in self.tasks:
            try:
                task.stop()
            except Exception as e:  # pylint: disable=broad-except
                raise Failure(f'a task does not end in order: {e}') from e
        left = [str(path) for i in range(2) for path in pathlib.Path(self.folder.name, f'task{i}').rglob('*')]
        if left:
            raise Failure(f'left on disk: {left}')

    def close(self):
        self.leave.set()
        self.is_over.set()
        for task in self.tasks:
            task.process.kill()
            task.process.wait()
        for honest in self.honest:
            honest.stop()
        self.relay.stop()
        self.unix.close()
        try:
            self.folder.cleanup()
        except OSError:
            pass  # a killed program's folder


# ---- honest clients ----

def keep(task, data, bound):
    """A variable of a task that nobody knows the name of has |data|."""
    graph = Graph()
    name = f'kept_{os.urandom(8).hex()}'
    graph.node('v', 'VarHandleOp', dtype=(UINT8,), shape=ANY_SHAPE, shared_name=name, container='kept')
    graph.placeholder('x', UINT8)
    graph.node('a', 'AssignVariableOp', ['v', 'x'], dtype=(UINT8,))
    client = Client(task.address, options=STRANGER)
    handle = client.CreateSession(graph_def=graph.graph, config=ALONE, timeout=bound).session_handle
    value = messages.tensor_pb2.TensorProto(dtype=UINT8, tensor_content=data)
    value.tensor_shape.dim.add(size=len(data))
    client.RunStep(session_handle=handle, feed=[{'name': b'x:0', 'tensor': value}], target=['a'], timeout=bound)
    client.CloseSession(session_handle=handle, timeout=bound)
    client.close()


class Honest(threading.Thread):
    """Asks for steps and sessions all the time, as a client does that knows nothing of the others."""

    def __init__(self, world, task):
        super().__init__(daemon=True)
        self.world, self.task = world, task
        self.client = Client(task.address, options=STRANGER)
        self.handle = None
        self.turn = threading.Lock()
        self.is_over = threading.Event()
        graph = Graph()
        graph.placeholder('x')
        graph.node('y', 'Square', ['x'], T=(FLOAT,))
        self.graph = graph.graph
        keep(task, (world.secret * (SECRET_SIZE // 32))[:SECRET_SIZE], world.bound)

    def _step(self, handle, value):
        feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(value)}]
        response = self.client.RunStep(session_handle=handle, fetch=['y:0'], feed=feed, timeout=self.world.bound)
        result = float(tf.make_ndarray(response.tensor[0].tensor))
        if result != value * value:
            self.world.fail(f'an honest step gave {result} for {value * value}')

    def _create(self):
        return self.client.CreateSession(graph_def=self.graph, config=ALONE, timeout=self.world.bound).session_handle

    def _ask(self):
        """A step of the session that there is, and one of a new session."""
        if not self.handle:
            self.handle = self._create()
        self._step(self.handle, 3.0)
        handle = self._create()
        self._step(handle, 5.0)
        self.client.CloseSession(session_handle=handle, timeout=self.world.bound)

    def probe(self):
        end = time.monotonic() + self.world.bound
        with self.turn:
            while not self.is_over.is_set():
                try:
                    self._ask()
                    return
                except grpc.RpcError as e:
                    self.handle = None
                    # Any client may reset a task, which ends the sessions of all.
                    is_lost = e.code().name in ('ABORTED', 'CANCELLED')
                    if not is_lost or time.monotonic() > end:
                        self.world.fail(f'an honest client of {self.task.address} got {e.code().name}: {e.details()}')
                        return

    def run(self):
        while not self.is_over.wait(0.3):
            self.probe()

    def stop(self):
        self.is_over.set()
        if self.is_alive():
            self.join(3 * self.world.bound)
        self.client.close()


# ---- who stands between the tasks ----

class LyingRelay(grpc.GenericRpcHandler):
    """Passes on what the first task asks of the second. Once |lies| is set, numbers in answers become others of their kind: processes
    of the tasks, addresses in their memory; and what is told over Unix sockets passes through here, too."""

    def __init__(self, world, address):
        self.world = world
        self.lies = None  # chance
        options = [('grpc.max_send_message_length', -1), ('grpc.max_receive_message_length', -1), ('grpc.so_reuseport', 0)]
        self.channel = grpc.insecure_channel(address, options=options + STRANGER)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[self], options=options)
        self.address = f'127.0.0.1:{self.server.add_insecure_port("127.0.0.1:0")}'
        self.server.start()

    def stop(self):
        self.server.stop(0)
        self.channel.close()

    def service(self, details):
        def answer(data, context):
            method = details.method.rsplit('/', 1)[1]
            self.world.look_at_request('task 0', method, data)
            lies = self.lies
            ears = Ears(self.world, lies) if lies and method == 'RecvTensor' else None
            try:
                response = self._pass_on(details.method, ears.replace(data) if ears else data, context)
                if ears:
                    ears.pass_on()
                    response = lie(self.world, lies, response)
                return response
            except grpc.RpcError as e:
                context.abort(e.code(), e.details())
            finally:
                if ears:
                    ears.close()
        return grpc.unary_unary_rpc_method_handler(answer)

    def _pass_on(self, path, data, context):
        call = self.channel.unary_unary(path).future(data, timeout=min(context.time_remaining() or 60, 60))
        if not context.add_callback(call.cancel):
            call.cancel()
        try:
            return call.result()
        except grpc.FutureCancelledError:
            return context.abort(grpc.StatusCode.CANCELLED, '')


PREFIX = b'\0weir/same_host/'


class Ears:
    """A Unix socket in place of another one whose name a request has: what is told there is changed and told on."""

    def __init__(self, world, chance):
        self.world, self.chance = world, chance
        self.name, self.other = os.urandom(16), None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(PREFIX + self.name)
        self.socket.listen(4)
        self.socket.setblocking(False)

    def replace(self, request):
        sockets = listening()

        def change(value):
            if len(value) == 16 and is_listening(value, sockets):
                self.other = value
                return self.name
            if len(value) == 16:  # what only the two are to know
                self.world.note_id('tokens of task 0', int.from_bytes(value[:8], 'little'))
            return None
        try:
            return peer_lies.change_numbers(request, lambda n: n, change)
        except ValueError:
            return request

    def pass_on(self):
        while self.other:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    said = connection.recv(65536)
                except OSError:
                    continue
                self.world.look(said)
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as on:
                    try:
                        on.connect(PREFIX + self.other)
                        on.send(lie(self.world, self.chance, said))
                    except OSError:
                        pass

    def close(self):
        self.socket.close()


def listening():
    """The sockets that tasks of this machine listen on, as the kernel lists them: with an @ for a zero."""
    return pathlib.Path('/proc/net/unix').read_bytes()


def is_listening(name, sockets):
    return b'@weir/same_host/' + name.replace(b'\0', b'@') in sockets


def lie(world, chance, message):
    """|message| with its numbers changed into others of their kind: all of them lies about one victim, so that they agree."""
    victim = world.draw_task(chance)
    pids = {task.process.pid for task in world.tasks}
    spans = [(task, begin, end) for task in world.tasks for begin, end in world.writable(task)]
    are_others_changed = chance.random() < 0.3
    count = itertools.count()

    def change(number):
        if number in pids:
            return victim.process.pid
        owner = next((task for task, begin, end in spans if begin <= number < end), None)
        if owner:
            if next(count) == 0:  # where something is to be read
                secret = world.find(victim, world.secret)
                return secret if secret and chance.random() < 0.9 else number + chance.choice([0, 8, -4096, 1 << 30])
            # What is there may be looked for elsewhere.
            return number if owner is victim else world.plant(victim, world.read_memory(owner, number, 8)) or number
        if are_others_changed and chance.random() < 0.3:
            return chance.choice(peer_lies.NUMBERS) & peer_lies.MASK
        return number
    try:
        return peer_lies.change_numbers(message, change)
    except (ValueError, OSError, grpc.RpcError):
        return message
