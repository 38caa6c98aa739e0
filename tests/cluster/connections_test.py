"""Callables that connect tensors (CallableOptions.tensor_connection): who reads one tensor reads another instead. TensorFlow's own server
says what comes out, value or error."""
import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2

from clusters import session, tf, tf1

FED = [1., 2.]
# feeds, fetches, targets, connections as (from, to)
CASES = {
    'a placeholder': ([], ['y:0'], [], [('c:0', 'x:0')]),
    'an inner tensor': (['x:0'], ['z:0'], [], [('c:0', 'y:0')]),
    'two': ([], ['w:0'], [], [('c:0', 'x:0'), ('d:0', 'z:0')]),
    'from what is fetched': ([], ['c:0', 'y:0'], [], [('c:0', 'x:0')]),
    'from what was connected before': (['x:0'], ['w:0'], [], [('c:0', 'y:0'), ('y:0', 'z:0')]),
    'from what is connected later': (['x:0'], ['w:0'], [], [('y:0', 'z:0'), ('c:0', 'y:0')]),
    'from what is fed': (['x:0'], ['z:0'], [], [('x:0', 'y:0')]),
    'from what reads a feed': (['x:0'], ['w:0'], [], [('y:0', 'z:0')]),
    'from a placeholder that nobody feeds': ([], ['z:0'], [], [('x:0', 'y:0')]),
    'from a variable': ([], ['y:0'], [], [('v:0', 'x:0')]),
    'to a variable that is read': ([], ['v/read:0'], [], [('c:0', 'v:0')]),
    'to a variable that is written': ([], ['a:0'], [], [('c:0', 'v:0')]),
    'another shape': ([], ['y:0'], [], [('row:0', 'x:0')]),
    'another shape than a constant': ([], ['d:0'], [], [('row:0', 'c:0')]),
    'a value that is a shape': ([], ['zeros:0'], [], [('other_dims:0', 'dims:0')]),
    'another type': ([], ['y:0'], [], [('dims:0', 'x:0')]),
    'another type that nobody reads': (['x:0'], ['z:0'], [], [('dims:0', 'c:0')]),
    'a string': ([], ['s:0'], [], [('t:0', 's_in:0')]),
    'behind a placeholder': ([], ['after_x:0'], [], [('c:0', 'x:0')]),
    'behind another node': ([], ['after_y:0'], [], [('c:0', 'y:0')]),
    'a target': ([], [], ['y'], [('c:0', 'x:0')]),
    'a placeholder as a target': ([], ['y:0'], ['x'], [('c:0', 'x:0')]),
    'into a loop': (['x:0', 'n:0'], ['sum:0'], [], [('c:0', 'y:0')]),
    'within a loop': (['x:0', 'n:0'], ['sum:0'], [], [('loop/Identity_1:0', 'loop/double:0')]),
    'out of a loop': (['x:0', 'n:0'], ['w:0'], [], [('sum:0', 'z:0')]),
    'from within a loop': (['x:0', 'n:0'], ['w:0'], [], [('loop/double:0', 'z:0')]),
    'round a loop': (['x:0', 'n:0'], ['sum:0'], [], [('loop/double:0', 'loop/Identity_1:0')]),
    'to a function': (['x:0'], ['twice:0'], [], [('c:0', 'y:0')]),
    'no index': ([], ['y:0'], [], [('c', 'x')]),
    'a cycle': (['x:0'], ['w:0'], [], [('z:0', 'y:0')]),
    'itself': (['x:0'], ['z:0'], [], [('y:0', 'y:0')]),
    'a cycle that nobody needs': ([], ['c:0'], [], [('z:0', 'x:0')]),
    'a cycle of two': ([], ['w:0'], [], [('w:0', 'c:0'), ('d:0', 'y:0')]),
    'no cycle, for it is fed': (['y:0'], ['z:0'], [], [('z:0', 'x:0')]),
    'fed and connected': (['x:0'], ['y:0'], [], [('c:0', 'x:0')]),
    'connected twice': ([], ['y:0'], [], [('c:0', 'x:0'), ('d:0', 'x:0')]),
    'connected and fetched': ([], ['x:0'], [], [('c:0', 'x:0')]),
    'from nobody': ([], ['y:0'], [], [('nobody:0', 'x:0')]),
    'to nobody': ([], ['y:0'], [], [('c:0', 'nobody:0')]),
    'from no such output': ([], ['y:0'], [], [('c:3', 'x:0')]),
    'to no such output': ([], ['y:0'], [], [('c:0', 'x:3')]),
    'from a control edge': ([], ['y:0'], [], [('^c', 'x:0')]),
    'no names': ([], ['y:0'], [], [('', '')]),
    'nothing to run': ([], [], [], [('c:0', 'x:0')]),
}


def add_loop(count, start):
    """As nodes, the names of which CASES has."""
    tf1.disable_control_flow_v2()
    try:
        return tf1.while_loop(lambda i, _: i < count, lambda i, all: (i + 1, tf.multiply(all, 2., name='double')), [0, start],
                              name='loop')[1]
    finally:
        tf1.enable_control_flow_v2()


def graph_of(devices):
    """The nodes of CASES, on |devices| in turn."""
    with tf.Graph().as_default() as graph, tf1.container('connections'):
        with tf.device(devices[0]):
            x = tf1.placeholder(tf.float32, [2], name='x')
            n = tf1.placeholder_with_default(3, [], name='n')
            v = tf1.get_variable('v', initializer=[5., 6.], use_resource=False)
            tf1.assign_add(v, [1., 1.], name='a')
            tf.constant([[1., 2., 3.]], name='row')
            dims = tf.constant([1, 2], name='dims')
            tf.constant([3], name='other_dims')
        with tf.device(devices[1 % len(devices)]):
            c = tf.constant([10., 20.], name='c')
            y = tf.square(x, name='y')
            tf.zeros(dims, name='zeros')
            tf.strings.join([tf1.placeholder(tf.string, [], name='s_in'), '!'], name='s')
        with tf.device(devices[2 % len(devices)]):
            tf.add(c, c, name='d')
            z = tf.add(y, 1., name='z')
            tf.multiply(z, 2., name='w')
            tf.constant('text', name='t')
            for name, tensor in (('x', x), ('y', y)):
                with tf.control_dependencies([tensor]):
                    tf.constant(7., name=f'after_{name}')
            tf.identity(add_loop(n, y), name='sum')
            tf.identity(tf.function(lambda t: t + t)(y), name='twice')
    return graph


def outcomes(servers, graph):
    """For every case what its callable gives, or when it fails and how. All of them in one session: they share names and kernels."""
    results = {}
    with session(servers, graph) as s:
        s.run('v/Assign')
        for name, (feeds, fetches, targets, connections) in CASES.items():
            options = config_pb2.CallableOptions(feed=feeds, fetch=fetches, target=targets)
            for source, to in connections:
                options.tensor_connection.add(from_tensor=source, to_tensor=to)
            stage = 'making'
            try:
                call = s._make_callable_from_options(options)
                stage = 'running'
                values = call(*[np.int32(4) if feed == 'n:0' else np.float32(FED) for feed in feeds])
                results[name] = [np.asarray(value).tolist() for value in values]
            except tf.errors.OpError as error:
                results[name] = (stage, error.error_code)
    return results


@pytest.fixture(scope='module')
def tensorflow_outcomes(tensorflow_server):
    return outcomes(tensorflow_server, graph_of(['']))


def test_connections(server, tensorflow_outcomes):
    assert tensorflow_outcomes['an inner tensor'] == [[11, 21]] and tensorflow_outcomes['to nobody'][1] == 5
    assert outcomes(server, graph_of([''])) == tensorflow_outcomes


def test_connections_across_tasks(cluster, tensorflow_outcomes):
    assert outcomes(cluster, graph_of(['/job:worker/task:0', '/job:ps/task:0', '/job:worker/task:1'])) == tensorflow_outcomes
