"""TensorFlow's master and worker messages, for which its package has no modules, and a client of raw calls."""
import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory  # noqa: F401
from tensorflow.core.framework import cost_graph_pb2, device_attributes_pb2, graph_pb2, step_stats_pb2, tensor_pb2  # noqa: F401
from tensorflow.core.protobuf import config_pb2, debug_pb2, tensorflow_server_pb2  # noqa: F401

import clusters

FILES = ['tensorflow/core/framework/graph.proto', 'tensorflow/core/framework/tensor.proto',
         'tensorflow/core/framework/step_stats.proto', 'tensorflow/core/framework/device_attributes.proto',
         'tensorflow/core/framework/cost_graph.proto', 'tensorflow/core/protobuf/config.proto',
         'tensorflow/core/protobuf/debug.proto', 'tensorflow/core/protobuf/tensorflow_server.proto', 'google/protobuf/any.proto']
TF = '.tensorflow.'
MESSAGES = {  # name: fields as "name number type"; "*" means repeated
    'NamedTensor': 'name 1 string, tensor 2 .tensorflow.TensorProto',
    'CreateSessionRequest': 'graph_def 1 .tensorflow.GraphDef, config 2 .tensorflow.ConfigProto, target 3 string',
    'CreateSessionResponse': 'session_handle 1 string, graph_version 2 int64',
    'ExtendSessionRequest': 'session_handle 1 string, graph_def 2 .tensorflow.GraphDef, current_graph_version 3 int64',
    'ExtendSessionResponse': 'new_graph_version 4 int64',
    'RunStepRequest': 'session_handle 1 string, feed 2 *NamedTensor, fetch 3 *string, target 4 *string, '
                      'options 5 .tensorflow.RunOptions, partial_run_handle 6 string, '
                      'store_errors_in_response_body 7 bool, request_id 8 int64',
    'RunStepResponse': 'tensor 1 *NamedTensor, metadata 2 .tensorflow.RunMetadata, status_code 3 int64, '
                       'status_error_message 4 string',
    'PartialRunSetupRequest': 'session_handle 1 string, feed 2 *string, fetch 3 *string, target 4 *string, request_id 5 int64',
    'PartialRunSetupResponse': 'partial_run_handle 1 string',
    'CloseSessionRequest': 'session_handle 1 string',
    'CloseSessionResponse': '',
    'ResetRequest': 'container 1 *string, device_filters 2 *string',
    'ResetResponse': '',
    'ListDevicesRequest': 'session_handle 1 string',
    'ListDevicesResponse': 'local_device 1 *.tensorflow.DeviceAttributes, remote_device 2 *.tensorflow.DeviceAttributes',
    'MakeCallableRequest': 'session_handle 1 string, options 2 .tensorflow.CallableOptions, request_id 3 int64',
    'MakeCallableResponse': 'handle 1 int64',
    'RunCallableRequest': 'session_handle 1 string, handle 2 int64, feed 3 *.tensorflow.TensorProto, request_id 4 int64',
    'RunCallableResponse': 'fetch 1 *.tensorflow.TensorProto, metadata 2 .tensorflow.RunMetadata',
    'ReleaseCallableRequest': 'session_handle 1 string, handle 2 int64',
    'ReleaseCallableResponse': '',
    'GetStatusRequest': '',
    'GetStatusResponse': 'device_attributes 1 *.tensorflow.DeviceAttributes',
    'CreateWorkerSessionRequest': 'session_handle 1 string, server_def 2 .tensorflow.ServerDef, isolate_session_state 3 bool, '
                                  'cluster_device_attributes 4 *.tensorflow.DeviceAttributes, master_task 5 string, '
                                  'master_incarnation 6 int64',
    'CreateWorkerSessionResponse': '',
    'DeleteWorkerSessionRequest': 'session_handle 1 string',
    'DeleteWorkerSessionResponse': '',
    'RegisterGraphRequest': 'session_handle 1 string, graph_def 2 .tensorflow.GraphDef, has_control_flow 3 bool, '
                            'graph_options 4 .tensorflow.GraphOptions, debug_options 5 .tensorflow.DebugOptions, '
                            'create_worker_session_called 6 bool, '
                            'collective_graph_key 7 int64, config_proto 8 .tensorflow.ConfigProto',
    'RegisterGraphResponse': 'graph_handle 1 string',
    'DeregisterGraphRequest': 'graph_handle 1 string, session_handle 2 string, create_worker_session_called 3 bool',
    'DeregisterGraphResponse': '',
    'ExecutorOpts': 'record_costs 1 bool, record_timeline 3 bool, record_partition_graphs 4 bool, '
                    'report_tensor_allocations_upon_oom 5 bool',
    'RunGraphRequest': 'graph_handle 1 string, step_id 2 int64, send 3 *NamedTensor, recv_key 4 *string, '
                       'exec_opts 5 ExecutorOpts, is_partial 6 bool, is_last_partial_run 7 bool, session_handle 8 string, '
                       'store_errors_in_response_body 9 bool, create_worker_session_called 10 bool, request_id 11 int64',
    'RunGraphResponse': 'recv 1 *NamedTensor, step_stats 2 .tensorflow.StepStats, cost_graph 3 .tensorflow.CostGraphDef, '
                        'partition_graph 4 *.tensorflow.GraphDef, status_code 5 int64, status_error_message 6 string',
    'CleanupGraphRequest': 'step_id 1 int64',
    'CleanupGraphResponse': '',
    'CleanupAllRequest': 'container 1 *string',
    'CleanupAllResponse': '',
    'RecvTensorRequest': 'step_id 1 int64, rendezvous_key 2 string, dma_ok 3 bool, client_locality 4 .tensorflow.DeviceLocality, '
                         'server_locality 5 .tensorflow.DeviceLocality, transport_options 6 .google.protobuf.Any, request_id 7 int64',
    'RecvTensorResponse': 'tensor 1 .tensorflow.TensorProto, is_dead 2 bool, send_start_micros 3 int64, '
                          'transport_options 4 .google.protobuf.Any, require_ack 5 bool',
    'MarkRecvFinishedRequest': 'request_id 1 int64',
    'MarkRecvFinishedResponse': '',
    'LabeledStepStats': 'step_id 1 int64, step_stats 2 .tensorflow.StepStats',
    'LoggingRequest': 'enable_rpc_logging 1 bool, clear 2 bool, fetch_step_id 3 *int64, disable_rpc_logging 4 bool',
    'LoggingResponse': 'step 1 *LabeledStepStats',
    'TraceOpts': '',
    'TracingRequest': 'options 1 TraceOpts',
    'TracingResponse': '',
}
MASTER = ['CreateSession', 'ExtendSession', 'RunStep', 'PartialRunSetup', 'CloseSession', 'Reset', 'ListDevices', 'MakeCallable',
          'RunCallable', 'ReleaseCallable']
WORKER = ['GetStatus', 'CreateWorkerSession', 'DeleteWorkerSession', 'RegisterGraph', 'DeregisterGraph', 'RunGraph',
          'CleanupGraph', 'CleanupAll', 'RecvTensor', 'MarkRecvFinished', 'Logging', 'Tracing']


def _add_field(message, text):
    name, number, kind = text.split()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.startswith('*') else field.LABEL_OPTIONAL
    kind = kind.lstrip('*')
    scalar = {'string': field.TYPE_BYTES, 'int64': field.TYPE_INT64, 'bool': field.TYPE_BOOL}.get(kind)
    if scalar:
        field.type = scalar
        return
    field.type = field.TYPE_MESSAGE
    field.type_name = kind if kind.startswith('.') else '.weir.testing.' + kind


def _make():
    file = descriptor_pb2.FileDescriptorProto(name='weir/testing.proto', package='weir.testing', syntax='proto3', dependency=FILES)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(', ')):
            _add_field(message, text)
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName('weir.testing.' + name)) for name in MESSAGES}


CLASSES = _make()


def path_of(method):
    return ('/tensorflow.MasterService/' if method in MASTER else '/tensorflow.WorkerService/') + method


class Client:
    """Calls of master and worker methods, field by field or as bytes."""

    def __init__(self, address, options=()):
        unlimited = [('grpc.max_send_message_length', -1), ('grpc.max_receive_message_length', -1)]
        self.channel = grpc.insecure_channel(address, options=[*unlimited, *options])

    def close(self):
        self.channel.close()

    def raw(self, path, data, **kwargs):
        kwargs.setdefault('timeout', clusters.PATIENCE_MS / 1000)
        return self.channel.unary_unary(path)(data, **kwargs)

    def start(self, method, timeout=clusters.PATIENCE_MS / 1000, **fields):
        """A call that has not been answered yet."""
        call = self.channel.unary_unary(path_of(method), request_serializer=lambda m: m.SerializeToString(),
                                        response_deserializer=CLASSES[method + 'Response'].FromString)
        return call.future(encoded(method + 'Request', fields), timeout=timeout)

    def __getattr__(self, method):
        """client.RunStep(fetch=[...]) → the response; an error is a grpc.RpcError."""
        if method + 'Request' not in CLASSES:
            raise AttributeError(method)
        return lambda **fields: self.start(method, **fields).result()


def encoded(name, fields):
    return CLASSES[name](**{k: _bytes(v) for k, v in fields.items()})


def _bytes(value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [_bytes(v) for v in value]
    return value


def code_of(fn, *args, **kwargs):
    """(code, message) of the error that a call ends with."""
    try:
        result = fn(*args, **kwargs)
    except grpc.RpcError as e:
        return e.code().name, e.details()
    raise AssertionError(f'no error, but {result!r}')
