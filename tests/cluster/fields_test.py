"""The fields of the messages: those that clients set have their effect, all others are skipped. What TensorFlow's server makes of
a request is the measure."""
import numpy as np
import pytest
from tensorflow.core.framework import attr_value_pb2, graph_pb2, tensor_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

import messages
from clusters import session, tf, tf1, unique
from messages import Client, code_of

USED_CONFIG = {'device_count', 'device_filters', 'operation_timeout_in_ms', 'cluster_def', 'isolate_session_state'}


@pytest.fixture(params=['weir', 'tf'])
def client(request, server, tensorflow_server):
    """A raw client of a server of each kind."""
    target = server.address if request.param == 'weir' else tensorflow_server.target.removeprefix('grpc://')
    client = Client(target)
    client.kind = request.param
    yield client
    client.Reset(container=['of nobody'])  # closes the sessions that the test left
    client.close()


def fill(message, skipped=(), depth=0):
    """Sets every field that is not in |skipped| to something that is not its default, in messages within as well."""
    for field in message.DESCRIPTOR.fields:
        if field.name in skipped or depth > 4 or (field.containing_oneof and message.WhichOneof(field.containing_oneof.name)):
            continue
        value = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            kind = field.message_type.fields_by_name['value']
            key = field.message_type.fields_by_name['key']
            name = 'key' if key.type == key.TYPE_STRING else 1
            if kind.message_type:
                fill(value[name], depth=depth + 1)
            else:
                value[name] = 'v' if kind.type == kind.TYPE_STRING else 1
        elif field.message_type:
            fill(value.add() if field.is_repeated else value, depth=depth + 1)
        else:
            scalar = {field.TYPE_STRING: 'text', field.TYPE_BYTES: b'text', field.TYPE_BOOL: True, field.TYPE_ENUM: 1,
                      field.TYPE_FLOAT: 0.5, field.TYPE_DOUBLE: 0.5}.get(field.type, 1)
            value.append(scalar) if field.is_repeated else setattr(message, field.name, scalar)
    return message


def small_graph():
    with tf.Graph().as_default() as graph:
        tf.square(tf1.placeholder(tf.float32, [2], name='x'), name='y')
    return graph.as_graph_def()


def run(client, handle, **fields):
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1.0, 3.0])}]
    return client.RunStep(session_handle=handle, fetch=['y:0'], feed=feed, **fields)


def value_of(response):
    return tf.make_ndarray(response.tensor[0].tensor).tolist()


# ---- options ----

def test_config_fields_that_nobody_uses_are_skipped(server):
    """All of ConfigProto, GraphOptions, OptimizerOptions and Experimental but what has an effect."""
    client = Client(server.address)
    config = fill(config_pb2.ConfigProto(), USED_CONFIG)
    assert config.graph_options.optimizer_options.cpu_global_jit and config.experimental.coordination_config.service_type
    handle = client.CreateSession(graph_def=small_graph(), config=config, target='anything').session_handle
    assert value_of(run(client, handle)) == [1, 9]
    client.CloseSession(session_handle=handle)
    client.close()


def test_config_fields_go_on_to_workers(cluster):
    """RegisterGraph carries the whole of it."""
    config = fill(config_pb2.ConfigProto(operation_timeout_in_ms=30000), USED_CONFIG)
    client = Client(cluster.tasks['worker', 0].address)
    with tf.Graph().as_default() as graph, tf.device('/job:ps/task:1'):
        tf.square(tf1.placeholder(tf.float32, [2], name='x'), name='y')
    handle = client.CreateSession(graph_def=graph.as_graph_def(), config=config).session_handle
    assert value_of(run(client, handle)) == [1, 9]
    client.CloseSession(session_handle=handle)
    client.close()


@pytest.mark.parametrize('option, kind', [('auto_mixed_precision', tf.float16), ('auto_mixed_precision_cpu', tf.float16),
                                          ('auto_mixed_precision_onednn_bfloat16', tf.bfloat16), ('remapping', tf.float32)])
def test_mixed_precision(cluster, option, kind):
    """Products compute in the type that the client asks for, on any task."""
    graph_options = tf1.GraphOptions(rewrite_options=rewriter_config_pb2.RewriterConfig(**{option: 'ON'}))
    third = np.float32(1 / 3)
    with session(cluster.tasks['worker', 0], graph_options=graph_options) as s:
        x = tf1.placeholder(tf.float32, [1, 1])
        with tf.device('/job:ps/task:1'):
            y = tf.matmul(x, [[1.0]], name='first')
        z = tf.matmul(tf.nn.relu(y), [[1.0]], name='second')
        metadata = tf1.RunMetadata()
        value = s.run(z, {x: [[third]]}, tf1.RunOptions(output_partition_graphs=True), metadata)
    assert value.dtype == np.float32
    assert value.item() == np.float32(third.astype(kind.as_numpy_dtype))
    types = {n.name: n.attr['T'].type for g in metadata.partition_graphs for n in g.node}
    assert types['first'] == types['second'] == types['Relu'] == kind.as_datatype_enum


def test_session_options_of_the_client(server, tensorflow_server):
    """What users set in a ConfigProto that a server of one CPU has no use for."""
    config = {'allow_soft_placement': True, 'log_device_placement': False, 'intra_op_parallelism_threads': 1,
              'inter_op_parallelism_threads': 1, 'placement_period': 5,
              'gpu_options': tf1.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.5),
              'graph_options': tf1.GraphOptions(place_pruned_graph=True, infer_shapes=True, build_cost_model=1,
                                                optimizer_options=tf1.OptimizerOptions(opt_level=tf1.OptimizerOptions.L0)),
              'share_cluster_devices_in_session': True, 'device_count': {'CPU': 1, 'GPU': 0}}
    for target in (server, tensorflow_server):
        with session(target, **config) as s:
            x = tf1.placeholder(tf.float32, [2])
            np.testing.assert_array_equal(s.run(tf.square(x) + 1, {x: [1, 2]}), [2, 5])


def test_run_options_that_nobody_uses_are_skipped(client):
    handle = client.CreateSession(graph_def=small_graph()).session_handle
    options = config_pb2.RunOptions(inter_op_thread_pool=0, report_tensor_allocations_upon_oom=True)
    options.experimental.collective_graph_key = 5
    options.experimental.use_run_handler_pool = True
    options.debug_options.global_step = 3
    options.debug_options.reset_disk_byte_usage = True
    assert value_of(run(client, handle, options=options)) == [1, 9]


@pytest.mark.parametrize('level', ['NO_TRACE', 'SOFTWARE_TRACE', 'HARDWARE_TRACE', 'FULL_TRACE'])
def test_trace_levels(client, level):
    handle = client.CreateSession(graph_def=small_graph()).session_handle
    number = config_pb2.RunOptions.TraceLevel.Value(level)
    response = run(client, handle, options=config_pb2.RunOptions(trace_level=number))
    assert bool(response.metadata.step_stats.dev_stats) == (level == 'FULL_TRACE')


def test_callable_options(client):
    handle = {'session_handle': client.CreateSession(graph_def=small_graph()).session_handle}
    options = config_pb2.CallableOptions(feed=['x:0'], fetch=['y:0'], target=['y'], fetch_skip_sync=True)
    options.run_options.report_tensor_allocations_upon_oom = True
    number = client.MakeCallable(options=options, **handle).handle
    response = client.RunCallable(handle=number, feed=[tf.make_tensor_proto([1.0, 3.0])], **handle)
    assert tf.make_ndarray(response.fetch[0]).tolist() == [1, 9]
    for change in (lambda o: o.feed_devices.update({'x:0': '/device:CPU:0'}), lambda o: o.fetch_devices.update({'y:0': '/device:CPU:0'})):
        other = config_pb2.CallableOptions(feed=['x:0'], fetch=['y:0'])
        change(other)
        code, message = code_of(client.MakeCallable, options=other, **handle)
        assert code == 'UNIMPLEMENTED' and 'fetch_devices' in message


def test_fields_from_the_future_are_skipped(client):
    """Fields with numbers that no message has yet, of every wire type, at the end of every request."""
    future = bytes.fromhex('d0bd02') + b'\x05' + bytes.fromhex('d2bd02') + b'\x02hi' + bytes.fromhex('d5bd02') + b'1234' + \
        bytes.fromhex('d1bd02') + b'12345678'

    def call(method, **fields):
        data = messages.encoded(method + 'Request', fields).SerializeToString() + future
        return messages.CLASSES[method + 'Response'].FromString(client.raw(messages.path_of(method), data))
    handle = {'session_handle': call('CreateSession', graph_def=small_graph()).session_handle}
    with tf.Graph().as_default() as more:
        tf.constant(1.0, name='more')
    assert call('ExtendSession', graph_def=more.as_graph_def(), **handle).new_graph_version == 1
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1.0, 3.0])}]
    assert value_of(call('RunStep', fetch=['y:0'], feed=feed, **handle)) == [1, 9]
    number = call('MakeCallable', options=config_pb2.CallableOptions(fetch=['more:0']), **handle).handle
    assert tf.make_ndarray(call('RunCallable', handle=number, **handle).fetch[0]) == 1
    call('ReleaseCallable', handle=number, **handle)
    assert call('PartialRunSetup', feed=['x:0'], fetch=['y:0'], **handle).partial_run_handle
    assert call('ListDevices', **handle).local_device
    if client.kind == 'weir':  # a partial run that nothing was fed to is not closed by TensorFlow's server
        call('CloseSession', **handle)
    call('Reset', container=['of nobody'])
    assert call('GetStatus').device_attributes
    name = {'session_handle': unique()}
    call('CreateWorkerSession', **name)
    placed = small_graph()
    for node in placed.node:
        node.device = '/job:localhost/replica:0/task:0/device:CPU:0'
    graph = call('RegisterGraph', graph_def=placed, create_worker_session_called=True, **name).graph_handle
    call('DeregisterGraph', graph_handle=graph, create_worker_session_called=True, **name)
    call('CleanupGraph', step_id=5)
    call('CleanupAll', container=['of nobody'])
    call('MarkRecvFinished', request_id=5)
    call('Logging', fetch_step_id=[5])
    call('DeleteWorkerSession', **name)


def test_reset_of_some_tasks(cluster, tensorflow_servers):
    """device_filters: TensorFlow's client does not set them."""
    for servers in (cluster, tensorflow_servers):
        graph, container = tf.Graph(), unique()
        with graph.as_default(), tf1.container(container):
            variables = []
            for task in ('/job:ps/task:0', '/job:ps/task:1', '/job:worker/task:0', '/job:worker/task:1'):
                with tf.device(task):
                    variables.append(tf1.get_variable(unique(), [], initializer=tf1.ones_initializer(), use_resource=True))
            exist = [v.is_initialized() for v in variables]
        with session(servers, graph) as s:
            s.run([v.initializer for v in variables])
            assert all(s.run(exist))
        client = Client(servers.target.removeprefix('grpc://'))
        client.Reset(container=[container], device_filters=['/job:ps/task:1', '/job:worker/task:0'])
        with session(servers, graph) as s:
            assert s.run(exist) == [True, False, False, True]
        client.Reset(container=[container], device_filters=['/job:worker'])
        with session(servers, graph) as s:
            assert s.run(exist) == [True, False, False, False]
        client.close()


# ---- graphs ----

def every_attribute():
    """An AttrValue of each kind, of names that no op has: they begin with _."""
    values = {'s': b'bytes\0', 'i': -5, 'f': 0.5, 'b': True, 'type': types_pb2.DT_HALF}
    attributes = {'_' + kind: attr_value_pb2.AttrValue(**{kind: value}) for kind, value in values.items()}
    attributes['_shape'] = attr_value_pb2.AttrValue(shape=tf.TensorShape([2, None]).as_proto())
    attributes['_unknown'] = attr_value_pb2.AttrValue(shape=tf.TensorShape(None).as_proto())
    attributes['_tensor'] = attr_value_pb2.AttrValue(tensor=tf.make_tensor_proto([1, 2]))
    attributes['_func'] = attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name='nobody'))
    attributes['_func'].func.attr['T'].type = 1
    lists = {'s': [b'a', b''], 'i': [1, -1], 'f': [1.5], 'b': [True, False], 'type': [1, 2], 'shape': [tf.TensorShape([3]).as_proto()],
             'tensor': [tf.make_tensor_proto(1.0)], 'func': [attr_value_pb2.NameAttrList(name='f')]}
    for kind, values in lists.items():
        attributes['_list_' + kind] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(**{kind: values}))
    return attributes


def test_every_kind_of_attribute(cluster):
    """They come with the graph, and go on to the worker that runs the node."""
    graph = small_graph()
    graph.node[1].device = '/job:ps/task:1'
    for name, value in every_attribute().items():
        graph.node[1].attr[name].CopyFrom(value)
    client = Client(cluster.tasks['worker', 0].address)
    handle = client.CreateSession(graph_def=graph).session_handle
    response = run(client, handle, options=config_pb2.RunOptions(output_partition_graphs=True))
    assert value_of(response) == [1, 9]
    node, = [n for g in response.metadata.partition_graphs for n in g.node if n.name == 'y']
    for name, value in every_attribute().items():
        assert node.attr[name] == value, name
    client.CloseSession(session_handle=handle)
    client.close()


def test_graph_fields_that_nobody_uses_are_skipped(client):
    graph = small_graph()
    fill(graph.debug_info)
    graph.version = 27  # as before there was |versions|
    fill(graph.node[1].experimental_debug_info)
    graph.node[1].experimental_type.type_id = 1  # TFT_VAR
    handle = client.CreateSession(graph_def=graph).session_handle
    assert value_of(run(client, handle)) == [1, 9]


@pytest.mark.parametrize('versions', [{}, {'producer': 0}, {'producer': 27}, {'producer': 2474, 'min_consumer': 12}, {'min_consumer': 2474},
                                      {'min_consumer': 5000}, {'bad_consumers': [3, 2000]}, {'bad_consumers': [3, 2474]},
                                      {'producer': 1 << 30}], ids=str)
def test_versions(client, versions):
    graph = small_graph()
    graph.versions.Clear()
    graph.versions.MergeFrom(type(graph.versions)(**versions))
    is_refused = versions.get('min_consumer') == 5000 or 2474 in versions.get('bad_consumers', [])
    if is_refused:
        code, message = code_of(client.CreateSession, graph_def=graph)
        assert code == 'INVALID_ARGUMENT' and 'consumer version' in message and '2474' in message
    else:
        assert value_of(run(client, client.CreateSession(graph_def=graph).session_handle)) == [1, 9]


FUNCTIONS = '''
  function {
    signature {
      name: "grow" summary: "a" description: "b" is_stateful: true
      input_arg { name: "one" type_attr: "T" description: "c" }
      input_arg { name: "many" type_attr: "T" number_attr: "N" }
      output_arg { name: "sum" type_attr: "T" }
      control_output: "printed"
      attr { name: "T" type: "type" description: "d" allowed_values { list { type: DT_FLOAT type: DT_INT32 } } }
      attr { name: "N" type: "int" has_minimum: true minimum: 1 default_value { i: 2 } }
    }
    arg_attr { key: 0 value { attr { key: "_note" value { b: true } } } }
    attr { key: "_noinline" value { b: true } }
    node_def { name: "rest" op: "AddN" input: "many" attr { key: "T" value { placeholder: "T" } } attr { key: "N" value { placeholder: "N" } } }
    node_def { name: "all" op: "AddV2" input: "one" input: "rest:sum:0" attr { key: "T" value { placeholder: "T" } } }
    node_def { name: "last" op: "NoOp" input: "^all" }
    ret { key: "sum" value: "all:z:0" }
    control_ret { key: "printed" value: "last" }
  }
  gradient { function_name: "grow" gradient_func: "nobody" }
'''


@pytest.mark.parametrize('dtype', [tf.float32, tf.int32])
def test_functions_with_attributes(client, dtype):
    """A library as no Python function makes it: attributes that stand for types and numbers, control outputs, gradients."""
    from google.protobuf import text_format
    with tf.Graph().as_default() as graph:
        for name in 'xyz':
            tf1.placeholder(dtype, [2], name=name)
    graph = graph.as_graph_def()
    text_format.Parse(FUNCTIONS, graph.library)
    node = graph.node.add(name='out', op='grow', input=['x', 'y', 'z'])
    node.attr['T'].type = dtype.as_datatype_enum
    node.attr['N'].i = 2
    handle = client.CreateSession(graph_def=graph).session_handle
    feed = [{'name': f'{name}:0'.encode(), 'tensor': tf.make_tensor_proto([i, 10 * i], dtype)} for i, name in enumerate('xyz', 1)]
    assert value_of(client.RunStep(session_handle=handle, fetch=['out:0'], feed=feed)) == [6, 60]


REFERENCES = '''
  node {{ name: "v" op: "VariableV2" device: "{device}" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
          attr {{ key: "shape" value {{ shape {{ }} }} }} attr {{ key: "shared_name" value {{ s: "{variable}" }} }} }}
  node {{ name: "five" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
          attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 5 }} }} }} }}
  node {{ name: "init" op: "Assign" input: "v" input: "five" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
  node {{ name: "out" op: "f" input: "{argument}" }}
  library {{ function {{
    signature {{ name: "f" input_arg {{ name: "a" type: DT_FLOAT is_ref: true }} output_arg {{ name: "o" type: DT_FLOAT {output} }} }}
    node_def {{ name: "n" {body} attr {{ key: "T" value {{ type: DT_FLOAT }} }} }} ret {{ key: "o" value: "{result}" }} }} }}
'''
READS = {'body': 'op: "Square" input: "a"', 'result': 'n:y:0'}
WRITES = {'body': 'op: "AssignAdd" input: "a" input: "a"', 'result': 'n:output_ref:0'}


def references(argument='v', output='', device='', body=READS):
    from google.protobuf import text_format
    text = REFERENCES.format(argument=argument, output=output, device=device, variable=unique(), **body)
    graph = text_format.Parse(text, graph_pb2.GraphDef())
    graph.versions.producer = 2000
    return graph


def test_references_as_arguments(client):
    """ArgDef.is_ref: whoever calls the function has a reference; the function reads its value."""
    handle = {'session_handle': client.CreateSession(graph_def=references()).session_handle}
    client.RunStep(target=['init'], **handle)
    assert value_of(client.RunStep(fetch=['out:0'], **handle)) == 25
    code, message = code_of(client.CreateSession, graph_def=references(argument='five'))
    assert code == 'INVALID_ARGUMENT' and 'expected float_ref' in message


def test_references_to_another_task(cluster):
    client = Client(cluster.tasks['worker', 0].address)
    handle = {'session_handle': client.CreateSession(graph_def=references(device='/job:ps/task:1')).session_handle}
    client.RunStep(target=['init'], **handle)
    assert value_of(client.RunStep(fetch=['out:0'], **handle)) == 25
    client.CloseSession(**handle)
    client.close()


@pytest.mark.parametrize('graph', [references(body=WRITES), references(output='is_ref: true'),
                                   references(output='is_ref: true', body=WRITES)], ids=['argument', 'result', 'both'])
def test_references_that_functions_cannot_have(server, graph):
    """To write to an argument, or to return a reference. TensorFlow's server refuses some of these, others end it."""
    client = Client(server.address)
    handle = {'session_handle': client.CreateSession(graph_def=graph).session_handle}
    client.RunStep(target=['init'], **handle)
    code, message = code_of(client.RunStep, fetch=['out:0'], **handle)
    assert code == 'INVALID_ARGUMENT' and 'float_ref' in message
    client.CloseSession(**handle)
    client.close()


LISTS = '''
  function {
    signature {
      name: "pass" input_arg { name: "all" type_list_attr: "Types" } output_arg { name: "same" type_list_attr: "Types" }
      output_arg { name: "last" type_attr: "T" }
      attr { name: "Types" type: "list(type)" has_minimum: true minimum: 1 } attr { name: "T" type: "type" }
    }
    node_def { name: "copy" op: "IdentityN" input: "all" attr { key: "T" value { placeholder: "Types" } } }
    node_def { name: "one" op: "Identity" input: "copy:output:1" attr { key: "T" value { placeholder: "T" } } }
    ret { key: "same" value: "copy:output" }
    ret { key: "last" value: "one:output:0" }
  }
'''


def test_functions_of_lists(client):
    """Arguments and results that are lists of types."""
    from google.protobuf import text_format
    with tf.Graph().as_default() as graph:
        tf1.placeholder(tf.float32, [2], name='x')
        tf1.placeholder(tf.int32, [], name='n')
    graph = graph.as_graph_def()
    text_format.Parse(LISTS, graph.library)
    node = graph.node.add(name='out', op='pass', input=['x', 'n'])
    node.attr['Types'].list.type.extend([types_pb2.DT_FLOAT, types_pb2.DT_INT32])
    node.attr['T'].type = types_pb2.DT_INT32
    handle = client.CreateSession(graph_def=graph).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1.0, 2.0])}, {'name': b'n:0', 'tensor': tf.make_tensor_proto(7)}]
    response = client.RunStep(session_handle=handle, fetch=['out:0', 'out:1', 'out:2'], feed=feed)
    assert [tf.make_ndarray(t.tensor).tolist() for t in response.tensor] == [[1, 2], 7, 7]


def test_signature_fields_that_nobody_uses_are_skipped(client):
    graph = small_graph()
    function = graph.library.function.add()
    signature = function.signature
    signature.name = 'negate'
    for flag in ('is_aggregate', 'is_commutative', 'allows_uninitialized_input', 'is_distributed_communication'):
        setattr(signature, flag, True)
    signature.deprecation.version = 5000
    signature.deprecation.explanation = 'text'
    argument = signature.input_arg.add(name='a', type=types_pb2.DT_FLOAT)
    argument.handle_data.add(dtype=types_pb2.DT_FLOAT)
    argument.experimental_full_type.type_id = 1
    signature.output_arg.add(name='b', type=types_pb2.DT_FLOAT)
    node = function.node_def.add(name='n', op='Neg', input=['a'])
    node.attr['T'].type = types_pb2.DT_FLOAT
    function.ret['b'] = 'n:y:0'
    graph.node.add(name='z', op='negate', input=['y'])
    handle = client.CreateSession(graph_def=graph).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1.0, 3.0])}]
    assert value_of(client.RunStep(session_handle=handle, fetch=['z:0'], feed=feed)) == [-1, -9]


def test_registered_gradients_and_unique_ids_are_skipped(client):
    graph = small_graph()
    graph.library.registered_gradients.add(gradient_func='g', registered_op_type='t')
    function = graph.library.function.add()
    function.signature.name = 'unused'
    function.resource_arg_unique_id[0] = 7
    handle = client.CreateSession(graph_def=graph).session_handle
    assert value_of(run(client, handle)) == [1, 9]


# ---- tensors ----

VALUES = {  # two values, in the field of the type
    'float_val': ([1.5, -2], ['DT_FLOAT']), 'double_val': ([1.5, -2], ['DT_DOUBLE']), 'int64_val': ([1, -(1 << 60)], ['DT_INT64']),
    'int_val': ([1, 2], ['DT_INT32', 'DT_INT16', 'DT_INT8', 'DT_UINT8', 'DT_UINT16', 'DT_QINT8', 'DT_QUINT8', 'DT_QINT32', 'DT_QINT16',
                         'DT_QUINT16', 'DT_INT4', 'DT_UINT4', 'DT_INT2', 'DT_UINT2']),
    'string_val': ([b'a', b''], ['DT_STRING']), 'bool_val': ([True, False], ['DT_BOOL']), 'half_val': ([0x3c00, 0x4000], ['DT_HALF', 'DT_BFLOAT16']),
    'scomplex_val': ([1, 2, 3, 4], ['DT_COMPLEX64']), 'dcomplex_val': ([1, 2, 3, 4], ['DT_COMPLEX128']),
    'uint32_val': ([1, 1 << 31], ['DT_UINT32']), 'uint64_val': ([1, 1 << 63], ['DT_UINT64']),
    'float8_val': (b'\x38\x40', ['DT_FLOAT8_E5M2', 'DT_FLOAT8_E4M3FN', 'DT_FLOAT8_E4M3FNUZ', 'DT_FLOAT8_E4M3B11FNUZ', 'DT_FLOAT8_E5M2FNUZ',
                                  'DT_FLOAT4_E2M1FN']),
}
TYPES = [(name, field) for field, (_, of_field) in VALUES.items() for name in of_field]


def splat(name, field):
    """Three elements, of which the last is not there but repeated."""
    proto = tensor_pb2.TensorProto(dtype=types_pb2.DataType.Value(name))
    proto.tensor_shape.dim.add(size=3)
    values = VALUES[field][0]
    setattr(proto, field, values) if isinstance(values, bytes) else getattr(proto, field).extend(values)
    return proto


def strings_of(content):
    """Three strings, each shorter than 128 bytes: the lengths, then the bytes."""
    ends = np.cumsum([3, *content[:3]])
    return [content[a:b] for a, b in zip(ends, ends[1:])]


def elements(client, handle, **fields):
    tensor = client.RunStep(session_handle=handle, fetch=['y:0'], **fields).tensor[0].tensor
    assert [d.size for d in tensor.tensor_shape.dim] == [3]
    if tensor.dtype == types_pb2.DT_STRING:
        return list(tensor.string_val) or strings_of(tensor.tensor_content)
    return tensor.tensor_content


def identity(name, source):
    """y = Identity(x), where |source| makes x out of a NodeDef."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = 2474
    number = types_pb2.DataType.Value(name)
    x = graph.node.add(name='x')
    x.attr['dtype'].type = number
    source(x)
    y = graph.node.add(name='y', op='Identity', input=['x'])
    y.attr['T'].type = number
    return graph


def expected(name, field):
    if name == 'DT_STRING':
        return [b'a', b'', b'']
    size = 1 if name.endswith(('INT2', 'INT4')) or 'FNUZ' in name or 'FLOAT4' in name else tf.as_dtype(types_pb2.DataType.Value(name)).size
    values = VALUES[field][0]
    if isinstance(values, bytes):
        return values + values[-1:]
    if 'COMPLEX' in name:
        return np.array([1 + 2j, 3 + 4j, 3 + 4j], np.complex64 if size == 8 else np.complex128).tobytes()
    kind = {'float_val': 'f4', 'double_val': 'f8'}.get(field) or ('u' if field == 'uint64_val' else 'i') + '8'
    data = np.array(values + values[-1:], kind)
    return data.tobytes() if kind[0] == 'f' else b''.join(v.tobytes()[:size] for v in data)  # little endian


@pytest.mark.parametrize('name, field', TYPES)
def test_values_of_every_type(client, name, field):
    """As a feed, and as a constant: the typed values, the last of them repeated."""
    def placeholder(node):
        node.op = 'Placeholder'

    def constant(node):
        node.op = 'Const'
        node.attr['value'].tensor.CopyFrom(splat(name, field))
    handle = client.CreateSession(graph_def=identity(name, placeholder)).session_handle
    assert elements(client, handle, feed=[{'name': b'x:0', 'tensor': splat(name, field)}]) == expected(name, field)
    if name != 'DT_FLOAT8_E5M2' or client.kind == 'weir':
        handle = client.CreateSession(graph_def=identity(name, constant)).session_handle
        assert elements(client, handle) == expected(name, field)


@pytest.mark.parametrize('number', [34, 99])
def test_types_that_there_are_none_of(client, number):
    """They are refused when the graph comes, with their number."""
    graph = small_graph()
    graph.node[0].attr['dtype'].type = number
    code, message = code_of(client.CreateSession, graph_def=graph)
    assert code == 'INVALID_ARGUMENT' and str(number) in message


def test_strings_as_content(client):
    """All the lengths first, then the bytes."""
    def placeholder(node):
        node.op = 'Placeholder'
    handle = client.CreateSession(graph_def=identity('DT_STRING', placeholder)).session_handle
    proto = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, tensor_content=b'\x02\x00\x02qarb')
    proto.tensor_shape.dim.add(size=3)
    assert elements(client, handle, feed=[{'name': b'x:0', 'tensor': proto}]) == [b'qa', b'', b'rb']


def test_shapes_of_tensors(client):
    """A scalar may leave its shape out; names of dimensions and the version number do not count."""
    def placeholder(node):
        node.op = 'Placeholder'
        node.attr['shape'].shape.unknown_rank = True
    handle = client.CreateSession(graph_def=identity('DT_FLOAT', placeholder)).session_handle

    def there_and_back(proto):
        tensor = client.RunStep(session_handle=handle, fetch=['y:0'], feed=[{'name': b'x:0', 'tensor': proto}]).tensor[0].tensor
        return tf.make_ndarray(tensor).tolist()
    assert there_and_back(tensor_pb2.TensorProto(dtype=1, float_val=[3])) == 3
    named = tensor_pb2.TensorProto(dtype=1, float_val=[3], version_number=7)
    named.tensor_shape.dim.add(size=2, name='batch')
    assert there_and_back(named) == [3, 3]
    nothing = tensor_pb2.TensorProto(dtype=1)
    nothing.tensor_shape.dim.add(size=0)
    assert there_and_back(nothing) == []
    zeros = tensor_pb2.TensorProto(dtype=1)
    zeros.tensor_shape.dim.add(size=2)
    assert there_and_back(zeros) == [0, 0]


def test_handles_of_resources_come_and_go(client):
    with tf.Graph().as_default() as graph:
        name = unique()
        v = tf1.get_variable(name, [2], initializer=tf1.ones_initializer(), use_resource=True)
        read = v.read_value().name
    handle = {'session_handle': client.CreateSession(graph_def=graph.as_graph_def()).session_handle}
    client.RunStep(target=[v.initializer.name], **handle)
    tensor = client.RunStep(fetch=[v.handle.name], **handle).tensor[0].tensor
    assert tensor.dtype == types_pb2.DT_RESOURCE
    if tensor.resource_handle_val:  # TensorFlow's server sends the same as bytes
        proto = tensor.resource_handle_val[0]
        assert (proto.device, proto.container, proto.name) == ('/job:localhost/replica:0/task:0/device:CPU:0', 'localhost', name)
        assert proto.maybe_type_name == 'N10tensorflow3VarE' and proto.dtypes_and_shapes[0].dtype == 1
    feed = [{'name': v.handle.name.encode(), 'tensor': tensor}]
    assert value_of(client.RunStep(fetch=[read], feed=feed, **handle)) == [1, 1]


def test_lists_come_and_go(client):
    """Variants: a TensorList fetched, and fed again."""
    with tf.Graph().as_default() as graph:
        empty = tf.raw_ops.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.float32)
        full = tf.raw_ops.TensorListPushBack(input_handle=empty, tensor=tf1.placeholder_with_default(5.0, []), name='full')
        tf.raw_ops.TensorListGetItem(input_handle=full, index=0, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32, name='item')
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    tensor = client.RunStep(session_handle=handle, fetch=['full:0']).tensor[0].tensor
    assert tensor.dtype == types_pb2.DT_VARIANT
    if tensor.variant_val:
        proto = tensor.variant_val[0]
        assert proto.type_name == 'tensorflow::TensorList' and proto.metadata and tf.make_ndarray(proto.tensors[0]) == 5
    feed = [{'name': b'full:0', 'tensor': tensor}]
    assert value_of(client.RunStep(session_handle=handle, fetch=['item:0'], feed=feed)) == 5


# ---- the worker's messages ----

def test_server_def_fields_that_nobody_uses_are_skipped(client):
    """Without a cluster in it a worker session is of the server's own."""
    name = unique()
    server = fill(messages.tensorflow_server_pb2.ServerDef(), {'cluster', 'job_name', 'protocol'})
    server.job_name, server.protocol, server.task_index = 'localhost', 'grpc', 0
    client.CreateWorkerSession(session_handle=name, server_def=server)
    graph = small_graph()
    for node in graph.node:
        node.device = '/job:localhost/replica:0/task:0/device:CPU:0'
    assert client.RegisterGraph(session_handle=name, create_worker_session_called=True, graph_def=graph).graph_handle
    client.DeleteWorkerSession(session_handle=name)


def test_worker_fields_that_nobody_uses_are_skipped(client):
    device = '/job:localhost/replica:0/task:0/device:CPU:0'
    name = unique()
    create = fill(messages.CLASSES['CreateWorkerSessionRequest'](), {'server_def', 'isolate_session_state', 'cluster_device_attributes'})
    create.session_handle = name.encode()
    create.master_task = b'/job:localhost/replica:0/task:0'
    create.master_incarnation = -5
    for attributes in client.GetStatus().device_attributes:
        create.cluster_device_attributes.add().CopyFrom(attributes)
    client.raw(messages.path_of('CreateWorkerSession'), create.SerializeToString())
    with tf.Graph().as_default() as graph:
        tf.square(tf.constant(1.5), name='y')
    graph = graph.as_graph_def()
    for node in graph.node:
        node.device = device
    send = graph.node.add(name='send', op='_Send', input=['y'], device=device)
    for key, value in {'tensor_name': b'out', 'send_device': device.encode(), 'recv_device': device.encode()}.items():
        send.attr[key].s = value
    send.attr['T'].type = 1
    incarnation = client.GetStatus().device_attributes[0].incarnation
    send.attr['send_device_incarnation'].i = np.uint64(incarnation).astype(np.int64)  # printed as unsigned
    send.attr['client_terminated'].b = False
    register = messages.CLASSES['RegisterGraphRequest'](session_handle=name.encode(), graph_def=graph, create_worker_session_called=True,
                                                        has_control_flow=True, collective_graph_key=0)
    register.graph_options.place_pruned_graph = True
    register.debug_options.global_step = 4
    register.config_proto.intra_op_parallelism_threads = 1
    data = client.raw(messages.path_of('RegisterGraph'), register.SerializeToString())
    made = {'session_handle': name, 'create_worker_session_called': True,
            'graph_handle': messages.CLASSES['RegisterGraphResponse'].FromString(data).graph_handle}
    step = abs(hash(name)) % (1 << 40) + 1
    opts = {'record_costs': True, 'record_timeline': True, 'record_partition_graphs': True, 'report_tensor_allocations_upon_oom': True}
    response = client.RunGraph(step_id=step, exec_opts=opts, store_errors_in_response_body=True, **made)
    assert response.status_code == 0 and not response.recv
    assert response.step_stats.dev_stats[0].device == device
    assert 'send' in {n.name for g in response.partition_graph for n in g.node}
    receive = fill(messages.CLASSES['RecvTensorRequest'](), {'transport_options'})
    receive.step_id = step
    receive.rendezvous_key = f'{device};{incarnation:016x};{device};out;0:0'.encode()
    receive.request_id = -abs(hash(name + 'receive'))
    data = client.raw(messages.path_of('RecvTensor'), receive.SerializeToString())
    answer = messages.CLASSES['RecvTensorResponse'].FromString(data)
    assert tf.make_ndarray(answer.tensor) == 2.25 and not answer.require_ack and answer.send_start_micros > 0
    client.CleanupGraph(step_id=step)
    client.DeregisterGraph(**made)
    client.DeleteWorkerSession(session_handle=name)
