"""Functions that call themselves, on a server: what never ends must not take the server with it."""
import grpc
import pytest
from google.protobuf import text_format

from clusters import tf1
from messages import Client

# R(x) = R(x), and Down(n) that fails after n calls.
GRAPH = '''
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "R" input: "x" }
node { name: "down" op: "Down" input: "x" }
library {
  function {
    signature { name: "R" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "again" op: "R" input: "a" }
    ret { key: "r" value: "again:r:0" }
  }
  function {
    signature { name: "Down" input_arg { name: "n" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
    node_def { name: "end" op: "LessEqual" input: "n" input: "zero:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "if" op: "If" input: "end:z:0" input: "n" attr { key: "Tcond" value { type: DT_BOOL } }
               attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
               attr { key: "then_branch" value { func { name: "End" } } }
               attr { key: "else_branch" value { func { name: "Further" } } } }
    ret { key: "r" value: "if:output:0" }
  }
  function {
    signature { name: "End" input_arg { name: "n" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "log" op: "Log" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "check" op: "CheckNumerics" input: "log:y:0" attr { key: "T" value { type: DT_FLOAT } }
               attr { key: "message" value { s: "at the end" } } }
    ret { key: "r" value: "check:output:0" }
  }
  function {
    signature { name: "Further" input_arg { name: "n" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
    node_def { name: "less" op: "Sub" input: "n" input: "one:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "rest" op: "Down" input: "less:z:0" }
    ret { key: "r" value: "rest:r:0" }
  }
}
'''


def run(server, fetch, value, timeout):
    client = Client(server.address)
    graph = text_format.Parse(GRAPH, tf1.GraphDef())
    handle = client.CreateSession(graph_def=graph).session_handle
    try:
        feed = [{'name': b'x:0', 'tensor': tf1.make_tensor_proto(value)}]
        with pytest.raises(grpc.RpcError) as error:
            client.RunStep(session_handle=handle, feed=feed, fetch=[fetch], timeout=timeout)
        return error.value
    finally:
        client.CloseSession(session_handle=handle)
        client.close()


def test_endless_recursion_with_a_deadline(server):
    assert run(server, 'y:0', 1.0, 0.3).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.wait_until_idle()


def test_failure_deep_down(server):
    error = run(server, 'down:0', 20000.0, 60)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert 'at the end' in error.details() and len(error.details()) < 1000
