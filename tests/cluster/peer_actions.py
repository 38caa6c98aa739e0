"""What peers do: each action draws all of it from its own seed. What stands after its yield happens when all peers are to leave."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import grpc

import clusters
import messages
import peer_frames
import peer_lies
import peer_world
from clusters import tf
from messages import Client
from peer_kernels import Step, table
from peer_lies import FLOAT, INT64, STRING, Graph, Liar
from peer_world import ALONE, STRANGER

PROGRAM = clusters.BUILD / 'tests' / 'programs' / 'peer'
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background: programs would leave it so
    signal.signal(signal.SIGINT, signal.default_int_handler)


def connect(task):
    return Client(task.address, options=STRANGER)


def ended(call):
    """Waits for a call, whatever it says."""
    try:
        return call.result()
    except (grpc.RpcError, grpc.FutureCancelledError):
        return None


# ---- frames ----

def flood(world, chance, note):
    for _ in range(3):
        peer_frames.flood(world, chance, note)
    yield


def mixture(world, chance, note):
    connections = peer_frames.mixture(world, chance, note)
    yield
    for connection in connections:
        connection.close()


# ---- calls ----

def small_graph():
    graph = Graph()
    graph.placeholder('x')
    graph.node('y', 'Square', ['x'], T=(FLOAT,))
    return graph.graph


def lies(world, chance, note):
    """Requests of all methods with whatever fields, some of them right, some of the bytes damaged."""
    task = world.draw_task(chance)
    client = connect(task)
    handle = client.CreateSession(graph_def=small_graph(), config=ALONE, timeout=world.bound).session_handle
    device = '/job:worker/replica:0/task:%d/device:CPU:0' % world.tasks.index(task)
    incarnation = client.GetStatus(timeout=world.bound).device_attributes[0].incarnation
    key = f'{device};{incarnation:016x};{device};t;0:0'.encode()
    numbers = [chance.getrandbits(40) for _ in range(3)]
    known = {'text': [handle, key, b'y:0', b'x:0', b'y'], 'number': [*numbers, os.getpid(), task.process.pid],
             'GraphDef': [small_graph(), Step(chance, world).graph.graph], 'TensorProto': [tf.make_tensor_proto([1.0, 2.0])]}
    liar = Liar(chance, known)
    codes = {}
    for _ in range(chance.choice([10, 40])):
        method = chance.choice(messages.MASTER + messages.WORKER)
        if method == 'Reset' and chance.random() < 0.8:
            continue
        request = liar.fill(messages.CLASSES[method + 'Request']())
        with world.mu:
            world.step_ids.update([request.step_id] if 'step_id' in request.DESCRIPTOR.fields_by_name else [])
        data = request.SerializeToString()
        data = peer_lies.damage(chance, data) if chance.random() < 0.2 else data
        try:
            world.look(client.raw(messages.path_of(method), data, timeout=chance.choice([0.05, 0.3])))
            code = 'OK'
        except grpc.RpcError as e:
            world.look((e.details() or '').encode())
            code = e.code().name
        codes[code] = codes.get(code, 0) + 1
    note(f'requests with lies: {codes}')
    yield
    client.close()


def many(world, chance, note):
    """A request that says something tens of thousands of times. It takes no longer than another of its size."""
    task = world.draw_task(chance)
    client = connect(task)
    handle = client.CreateSession(graph_def=small_graph(), config=ALONE, timeout=world.bound).session_handle
    count = 50000
    texts = peer_lies.colliding_texts(chance, count)
    kind = chance.choice(['fetch', 'target', 'feed', 'container', 'attributes', 'nodes', 'functions', 'inputs'])
    note(f'{count} times: {kind}')
    if kind in ('fetch', 'target'):
        path, data = 'RunStep', messages.encoded('RunStepRequest', {'session_handle': handle, kind: texts})
    elif kind == 'feed':
        feeds = [{'name': name, 'tensor': tf.make_tensor_proto(1.0)} for name in texts]
        path, data = 'RunStep', messages.encoded('RunStepRequest', {'session_handle': handle, 'feed': feeds})
    elif kind == 'container':
        path, data = 'CleanupAll', messages.encoded('CleanupAllRequest', {'container': texts})
    else:
        path, data = 'CreateSession', many_in_graph(kind, texts)
    data = data if isinstance(data, bytes) else data.SerializeToString()
    begin = time.monotonic()
    try:
        client.raw(messages.path_of(path), data, timeout=world.bound)
        code = 'OK'
    except grpc.RpcError as e:
        code = e.code().name
    note(f'{code} after {time.monotonic() - begin:.2f} s')
    if code == 'DEADLINE_EXCEEDED':
        world.fail(f'{kind}, {count} times, takes more than {world.bound} s')
    yield
    client.close()


def many_in_graph(kind, texts):
    """A CreateSessionRequest, field by field: names are bytes, which no description allows."""
    def field(number, value):
        return peer_lies.put_varint(number << 3 | 2) + peer_lies.put_varint(len(value)) + value
    if kind == 'attributes':
        node = field(1, b'c') + field(2, b'NoOp') + b''.join(field(5, field(1, text) + field(2, b'')) for text in texts)
        graph = field(1, node)
    elif kind == 'nodes':
        graph = b''.join(field(1, field(1, b'n' + text.hex().encode()) + field(2, b'NoOp')) for text in texts)
    elif kind == 'functions':
        graph = field(2, b''.join(field(1, field(1, field(1, text))) for text in texts))
    else:
        nodes = [field(1, field(1, b'n%d' % i) + field(2, b'NoOp')) for i in range(len(texts))]
        inputs = b''.join(field(3, b'^n%d' % i) for i in range(len(texts)))
        graph = b''.join(nodes) + field(1, field(1, b'all') + field(2, b'NoOp') + inputs)
    return field(1, graph) + field(2, ALONE.SerializeToString())


def keys(world, chance, note):
    """Keys of a table that collide under any hash without a key: they take as long as others."""
    task = world.draw_task(chance)
    client = connect(task)
    count = 1 << 17
    key_type = chance.choice([INT64, STRING])
    chosen = peer_lies.colliding_numbers(chance, count) if key_type == INT64 else peer_lies.colliding_texts(chance, count)
    others = [chance.getrandbits(62) for _ in range(count)] if key_type == INT64 else [chance.randbytes(16) for _ in range(count)]
    graph = Graph()
    graph.placeholder('k', key_type)
    target = table(graph, 'k', key_type, chance)
    handle = client.CreateSession(graph_def=graph.graph, config=ALONE, timeout=world.bound).session_handle
    seconds = []
    for values in (others, chosen):
        feed = [{'name': b'k:0', 'tensor': peer_lies.tensor(values, key_type)}]
        begin = time.monotonic()
        ended(client.start('RunStep', session_handle=handle, feed=feed, target=[target], timeout=world.bound))
        seconds.append(time.monotonic() - begin)
    note(f'{count} keys of type {key_type}: {seconds[0]:.2f} s, chosen ones {seconds[1]:.2f} s')
    if seconds[1] > max(5, 30 * seconds[0]):
        world.fail(f'chosen keys take {seconds[1]:.1f} s, others {seconds[0]:.2f} s')
    ended(client.start('CloseSession', session_handle=handle))
    yield
    client.close()


# ---- steps ----

def step(world, chance, note):
    """A step that nobody would wait for, with a deadline, cancelled, left alone, or without its client."""
    task = world.draw_task(chance)
    client = connect(task)
    drawn = Step(chance, world)
    fate = chance.choice(['deadline', 'cancelled', 'stays', 'stays', 'client gone', 'closed'])
    seconds = chance.choice([0.05, 0.3, 1.5])
    note(f'step: {drawn.text}; {fate} after {seconds} s')
    handle = client.CreateSession(graph_def=drawn.graph.graph, config=ALONE, timeout=world.bound).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(drawn.x)}, {'name': b'n:0', 'tensor': peer_lies.tensor(drawn.n, INT64)}]
    call = client.start('RunStep', session_handle=handle, feed=feed, target=drawn.targets,
                        timeout=seconds if fate == 'deadline' else 300)
    concurrent.futures.wait([_Waiting(call).done], timeout=seconds + 0.1)
    if fate == 'cancelled':
        call.cancel()
    if fate == 'client gone':
        client.close()
    if fate == 'closed':
        ended(client.start('CloseSession', session_handle=handle, timeout=world.bound))
    yield
    if fate != 'client gone':
        call.cancel()
        client.close()


class _Waiting:
    """A call of gRPC as a future that can be waited for."""

    def __init__(self, call):
        self.done = concurrent.futures.Future()
        call.add_done_callback(lambda _: self.done.set_result(None))


# ---- tensors between the tasks ----

def spanning(world, chance, note):
    """Steps over both tasks, with small and large tensors."""
    graph = Graph()
    graph.placeholder('x', device='/job:worker/task:1')
    size = chance.choice([1, 1000, 1 << 16, 1 << 18, 1 << 20])
    graph.const('dims', [size], peer_lies.INT32, device='/job:worker/task:1')
    graph.node('big', 'Fill', ['dims', 'x'], device='/job:worker/task:1', T=(FLOAT,), index_type=(peer_lies.INT32,))
    graph.node('y', 'Identity', ['big'], device='/job:worker/task:0', T=(FLOAT,))
    client = connect(world.tasks[0])
    codes = {}
    created = ended(client.start('CreateSession', graph_def=graph.graph, timeout=world.bound))
    for i in range(chance.choice([3, 10])) if created else []:
        feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(float(i))}]
        call = client.start('RunStep', session_handle=created.session_handle, feed=feed, fetch=['y:0'], timeout=5)
        response = ended(call)
        codes[call.code().name] = codes.get(call.code().name, 0) + 1
        if response is None:
            continue
        world.look(response.SerializeToString())
        values = tf.make_ndarray(response.tensor[0].tensor)
        if not world.relay.lies and not (values.size == size and (values == i).all()):
            world.fail('tensors that nobody lied about are wrong')
    note(f'steps over both tasks, {size} floats: {codes}')
    yield
    client.close()


def liar(world, chance, note):
    """Who stands between the tasks lies; and steps over both of them."""
    world.relay.lies = chance
    yield from spanning(world, peer_lies.seeded('in', chance.random()), lambda text: note('between the tasks lies: ' + text))


# ---- who is asked ----

class Impostor(grpc.GenericRpcHandler):
    """A server that says it is a master or a worker. How it answers each method is drawn once: most of them as it should."""
    WRONG = ['empty', 'garbage', 'silent', 'error', 'slow', 'lie']

    def __init__(self, world, chance, name):
        self.world, self.chance, self.name = world, chance, name
        share = chance.choice([0, 0.1, 0.5])
        self.how = {method: chance.choice(self.WRONG) if chance.random() < share else 'right'
                    for method in messages.MASTER + messages.WORKER}
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=[self], options=[('grpc.so_reuseport', 0)])
        self.address = f'127.0.0.1:{self.server.add_insecure_port("127.0.0.1:0")}'
        self.is_stopped = threading.Event()
        self.server.start()

    def right(self, method):
        response = messages.CLASSES[method + 'Response']()
        if method == 'GetStatus':
            response.device_attributes.add(name='/job:worker/replica:0/task:1/device:CPU:0', device_type='CPU',
                                           memory_limit=1 << 30, incarnation=77)
        for field in ('session_handle', 'graph_handle'):
            if field in response.DESCRIPTOR.fields_by_name:
                setattr(response, field, b'handle')
        if method == 'RecvTensor':
            response.tensor.CopyFrom(tf.make_tensor_proto(1.0))
        return response

    def service(self, details):
        def answer(data, context):
            method = details.method.rsplit('/', 1)[1]
            self.world.look_at_request(self.name, method, data)
            sockets = peer_world.listening()
            if any(peer_world.is_listening(data[i:i + 16], sockets) for i in range(min(len(data), 2000) - 15)):
                self.world.fail('a stranger was told where a task listens')
            how = self.how.get(method, 'error')
            if how == 'silent':
                self.is_stopped.wait(120)
            if how == 'slow':
                self.is_stopped.wait(0.5)
            if how == 'error':
                context.abort(self.chance.choice(list(grpc.StatusCode)[1:]), 'x' * self.chance.choice([0, 5000]))
            if how == 'garbage':
                return self.chance.randbytes(self.chance.choice([1, 100, 100000]))
            if how == 'empty':
                return b''
            response = self.right(method)
            return (Liar(self.chance).fill(response) if how == 'lie' else response).SerializeToString()
        return grpc.unary_unary_rpc_method_handler(answer)

    def stop(self):
        self.is_stopped.set()
        self.server.stop(0)


class Silent:
    """Takes connections, and says nothing, or just enough to begin."""

    def __init__(self, chance):
        self.says = chance.choice([b'', b'\0\0\0\4\0\0\0\0\0'])
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.taken = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        try:
            while True:
                connection, _ = self.listener.accept()
                self.taken.append(connection)
                connection.sendall(self.says)
        except OSError:
            pass

    def stop(self):
        for s in [self.listener, *self.taken]:
            s.close()


def draw_stranger(world, chance, name):
    return Silent(chance) if chance.random() < 0.4 else Impostor(world, chance, name)


def strangers(world, chance, note):
    """A client whose cluster has tasks that only it knows."""
    task = world.draw_task(chance)
    others = [draw_stranger(world, chance, f'of {task.address}') for _ in range(chance.choice([1, 3]))]
    config = messages.config_pb2.ConfigProto()
    job = config.cluster_def.job.add(name='worker')
    job.tasks[0] = task.address
    for i, other in enumerate(others):
        job.tasks[i + 1] = other.address
    graph = Graph()
    graph.const('dims', [chance.choice([1, 1 << 18])], peer_lies.INT32, device='/job:worker/task:1')
    graph.node('x', 'RandomUniform', ['dims'], device='/job:worker/task:1', T=(peer_lies.INT32,), dtype=(FLOAT,))
    graph.node('y', 'Square', ['x'], device='/job:worker/task:0', T=(FLOAT,))
    client = connect(task)
    calls, steps = [], []
    for _ in range(chance.choice([1, 4])):
        call = client.start('CreateSession', graph_def=graph.graph, config=config, target=f'grpc://{task.address}',
                            timeout=chance.choice([0.3, 2, 60]))
        concurrent.futures.wait([_Waiting(call).done], timeout=1)
        calls.append(call)
        if call.done() and call.code() == grpc.StatusCode.OK:
            for fetch in ('y:0', 'x:0'):
                ran = client.start('RunStep', session_handle=call.result().session_handle, fetch=[fetch], timeout=1)
                ended(ran)
                steps.append(ran.code().name)
    note(f'a cluster of strangers: {[type(other).__name__ for other in others]}, {[call.code().name for call in calls if call.done()]}, {steps}')
    yield
    for call in calls:
        call.cancel()
    client.close()
    for other in others:
        other.stop()


# ---- programs ----

def run_program(*args):
    return subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def output_of(process, seconds):
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None


def user(world, chance, note):
    """A program waits for a peer of any kind, and uses the same graph meanwhile."""
    stranger = draw_stranger(world, chance, 'program') if chance.random() < 0.8 else None
    address = stranger.address if stranger else chance.choice([world.tasks[0].address, world.tasks[1].address, '127.0.0.1:1'])
    if isinstance(stranger, Impostor):
        stranger.how.update(CreateSession='right', ExtendSession='right')  # else there is nothing to wait for
    note(f'a program with a master that is {type(stranger).__name__ if stranger else address}')
    process = run_program('use', 'grpc://' + address, chance.randrange(1 << 30), 2)
    output = output_of(process, 4 * world.bound)
    if output is None or process.returncode:
        world.fail(f'a program ends with {process.returncode}: {output}')
    yield
    if stranger:
        stranger.stop()


def trainer(world, chance, note):
    """A training loop that waits for ever, in a step or for its master, is told to end."""
    folder = world.scratch / f'train{chance.getrandbits(32)}'
    stranger = Silent(chance) if chance.random() < 0.4 else None
    block = chance.choice([0, 1, 5])
    process = run_program('train', folder, 'grpc://' + stranger.address if stranger else '-', 1000, block, 0.3)
    time.sleep(chance.choice([0.2, 0.5, 1]))
    note(f'a training loop {"with a silent master" if stranger else f"that blocks after {block} steps"} is told to end')
    process.send_signal(chance.choice([signal.SIGTERM, signal.SIGINT]))
    output = output_of(process, world.bound)
    if output is None:
        world.fail('a training loop does not end when it is told to')
    elif process.returncode > 0:
        world.fail(f'a training loop ends with {process.returncode}: {output}')
    yield
    if stranger:
        stranger.stop()


def killed(world, chance, note):
    """A training loop is killed again and again while it saves; the next one leaves only what it says there is."""
    folder = world.scratch / f'saves{chance.getrandbits(32)}'
    count = chance.choice([1, 8, 25])
    for _ in range(count):
        process = run_program('train', folder, '-', 100000, -1, 1)
        time.sleep(0.03 + 0.1 * chance.random())
        process.kill()
        process.communicate()
    process = run_program('train', folder, '-', _latest(folder) + 4, -1, 1)
    output = output_of(process, 2 * world.bound)
    if output is None or process.returncode:
        world.fail(f'a training loop does not go on after it was killed: {process.returncode} {output}')
    listed = set(re.findall(r'"(model.ckpt-\d+)"', (folder / 'checkpoint').read_text())) if output else set()
    left = [name for name in sorted(os.listdir(folder)) if not _is_listed(name, listed)]
    note(f'a training loop was killed {count} times; {len(listed)} checkpoints')
    if output is not None and left:
        world.fail(f'left on disk by killed saves: {left}')
    shutil.rmtree(folder, ignore_errors=True)
    yield


def _is_listed(name, checkpoints):
    """Whether a file of a training's folder is of a checkpoint that is there to stay, or of the training itself."""
    part = re.fullmatch(r'(model.ckpt-\d+)\.(index|data-\d+-of-\d+)', name)
    return part[1] in checkpoints if part else name == 'checkpoint' or name.startswith('events.out')


def _latest(folder):
    path = pathlib.Path(folder, 'checkpoint')
    steps = re.findall(r'model.ckpt-(\d+)', path.read_text()) if path.exists() else []
    return max(map(int, steps), default=0)


ACTIONS = {'flood': flood, 'mixture': mixture, 'lies': lies, 'many': many, 'keys': keys, 'step': step, 'spanning': spanning,
           'liar': liar, 'strangers': strangers, 'user': user, 'trainer': trainer, 'killed': killed}
WEIGHTS = {'flood': 6, 'step': 6, 'lies': 2, 'liar': 2, 'killed': 2}
