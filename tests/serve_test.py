"""weir serve from outside: TensorFlow Serving's REST and gRPC on models that the real TensorFlow saved, limits, versions, hostile
requests. Results are TensorFlow's own."""
import base64
import concurrent.futures
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model import loader_impl

import conftest
import serving_protos as pb

v1 = tf.compat.v1
WEIR = conftest.BUILD / 'cli' / 'weir'
PATIENCE = int(os.environ.get('WEIR_PATIENCE', 60))  # seconds; what hangs fails


# ---- models, saved by TensorFlow ----

class Several(tf.Module):
    """Signatures of several kinds: named inputs and outputs, strings, types, a loop that takes its time."""
    @tf.function(input_signature=[tf.TensorSpec([None, 3], name='x'), tf.TensorSpec([None], tf.int64, name='n')])
    def pair(self, x, n):
        return {'scaled': x * tf.cast(n, tf.float32)[:, None], 'count': n + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='text')])
    def words(self, text):
        return {'length': tf.strings.length(text), 'copy_bytes': tf.strings.join([text, '!']), 'upper': tf.strings.upper(text)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='number')])
    def parse(self, number):
        return {'value': tf.strings.to_number(number)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name='turns')])
    def spin(self, turns):
        return {'i': tf.while_loop(lambda i: i < turns, lambda i: i + 1, [tf.constant(0)], parallel_iterations=1)[0]}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], t, name={tf.half: 'half'}.get(t, t.name)) for t in (tf.float64, tf.half, tf.int8, tf.uint64, tf.bool)])
    def types(self, float64, half, int8, uint64, bool):
        given = {'float64': float64, 'half': half, 'int8': int8, 'uint64': uint64, 'bool': bool}
        return {f'{name}_out': tf.identity(value) for name, value in given.items()}

    @tf.function(input_signature=[tf.TensorSpec([None], name='x')])
    def log(self, x):
        return {'y': tf.math.log(x), 'total': tf.reduce_sum(x)}


SEVERAL = ['pair', 'words', 'parse', 'spin', 'types', 'log']


KERAS = {}  # the model that is saved as 'keras'


def save_dense(path, value):
    """Answers value * the sum of the inputs' four elements."""
    class Dense(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.fill([4, 1], float(value)))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], name='x')])
        def __call__(self, x):
            return {'y': x @ self.w}
    module = Dense()
    tf.saved_model.save(module, str(path), signatures=module.__call__)


def save_examples(path):
    """A classifier and a regressor of Examples, as estimators saved them."""
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], name='serialized')
        features = tf.io.parse_example(serialized, {'x': tf.io.FixedLenFeature([2], tf.float32), 'k': tf.io.FixedLenFeature([], tf.int64, 0)})
        score = features['x'] * 2 + tf.cast(features['k'], tf.float32)[:, None]
        labels = tf.tile(tf.constant([['cat', 'dog']]), [tf.shape(serialized)[0], 1])
        build = v1.saved_model.signature_def_utils
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, ['serve'], {
            'serving_default': build.classification_signature_def(serialized, labels, score),
            'regress': build.regression_signature_def(serialized, tf.reduce_sum(score, 1))})
        builder.save()


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp('models')
    several = Several()
    tf.saved_model.save(several, str(root / 'several' / '1'), signatures={name: getattr(several, name) for name in SEVERAL})
    for version in (1, 2, 3):
        save_dense(root / 'dense' / str(version), version)
    save_examples(root / 'examples' / '00000007')
    tf.keras.utils.set_random_seed(3)
    keras = tf.keras.Sequential([tf.keras.layers.Input((4, 4)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(8, 'relu'),
                                 tf.keras.layers.Dense(3, 'softmax')])
    keras.export(str(root / 'keras'), verbose=False)
    KERAS['model'] = keras
    return root


class Serve:
    """A weir serve that has announced itself."""
    def __init__(self, *args):
        self.process = subprocess.Popen([WEIR, 'serve', '--port=0', '--rest-port=0', *map(str, args)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f'weir serve ended with {self.process.wait()}: {self.process.stderr.read()}')
        self.port, self.rest_port = map(int, re.findall(r'port (\d+)', line))

    def call(self, path, body=None, method=None, headers={}):
        """(code, answer), which is JSON where it can be."""
        connection = http.client.HTTPConnection('127.0.0.1', self.rest_port, timeout=PATIENCE)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method or ('GET' if body is None else 'POST'), path, data, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if answer.headers['Content-Type'] == 'application/json' and text else text

    def predict(self, model, body, verb='predict'):
        code, answer = self.call(f'/v1/models/{model}:{verb}', body)
        assert code == 200, answer
        return answer

    def rpc(self, method, request, response, service='PredictionService', **options):
        with grpc.insecure_channel(f'127.0.0.1:{self.port}') as channel:
            call = channel.unary_unary(f'/tensorflow.serving.{service}/{method}', request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=response.FromString)
            return call(request, timeout=PATIENCE, **options)

    def metric(self, name):
        """The sum of the samples whose line begins so."""
        text = self.call('/metrics')[1]
        return sum(float(line.rsplit(' ', 1)[1]) for line in text.splitlines() if line.startswith(name))

    def wait_until(self, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.02)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.errors = self.process.stderr.read()


@pytest.fixture
def serve():
    started = []

    def start(*args):
        started.append(Serve(*args))
        return started[-1]
    yield start
    for s in started:
        s.end()


@pytest.fixture(scope='module')
def all_models(models):
    s = Serve(f'--model=several={models}/several', f'--model={models}/dense', f'--model={models}/examples', f'--model={models}/keras',
              '--keep-versions=2', '--label=dense/stable=2', '--max-body-size=1M')
    yield s
    assert s.end() == 0


# ---- REST ----

def test_status_and_metadata(all_models):
    code, answer = all_models.call('/v1/models/dense')
    states = [(v['version'], v['state'], v['status']['error_code']) for v in answer['model_version_status']]
    assert code == 200 and states == [('3', 'AVAILABLE', 'OK'), ('2', 'AVAILABLE', 'OK'), ('1', 'START', 'OK')]
    assert all_models.call('/v1/models/dense/versions/2')[1]['model_version_status'][0]['version'] == '2'
    assert all_models.call('/v1/models/examples')[1]['model_version_status'][0]['version'] == '7'
    code, answer = all_models.call('/v1/models/dense/labels/stable/metadata')
    assert code == 200 and answer['model_spec'] == {'name': 'dense', 'signature_name': '', 'version': '2'}
    signature = answer['metadata']['signature_def']['signature_def']['serving_default']
    assert signature['inputs']['x']['dtype'] == 'DT_FLOAT' and signature['method_name'] == 'tensorflow/serving/predict'
    assert signature['inputs']['x']['tensor_shape'] == {'dim': [{'size': '-1', 'name': ''}, {'size': '4', 'name': ''}], 'unknown_rank': False}


def test_keras_model_predicts_what_tensorflow_does(models, all_models):
    x = np.random.default_rng(1).normal(size=(5, 4, 4)).astype(np.float32)
    want = KERAS['model'](x).numpy()
    rows = all_models.predict('keras', {'instances': x.tolist()})['predictions']
    np.testing.assert_allclose(rows, want, rtol=1e-5, atol=1e-6)
    columns = all_models.predict('keras/versions/1', {'inputs': x.tolist()})['outputs']
    assert columns == rows  # to the last digit


def test_versions_and_labels(all_models):
    for which, value in [('', 3), ('/versions/2', 2), ('/labels/stable', 2)]:
        assert all_models.predict(f'dense{which}', {'instances': [[1, 1, 1, 1]]}) == {'predictions': [[value * 4.0]]}


def test_names_and_types(models, all_models):
    x, n = [[1, 2, 3], [4, 5, 6.5]], [2, 3]
    want = [{'scaled': [2.0, 4.0, 6.0], 'count': 3}, {'scaled': [12.0, 15.0, 19.5], 'count': 4}]
    rows = [{'x': a, 'n': b} for a, b in zip(x, n)]
    assert all_models.predict('several', {'instances': rows, 'signature_name': 'pair'})['predictions'] == want
    columns = all_models.predict('several', {'signature_name': 'pair', 'inputs': {'n': n, 'x': x}})['outputs']
    assert columns == {'scaled': [w['scaled'] for w in want], 'count': [3, 4]}
    given = {'float64': [[0.1, -1e300]], 'half': [[0.1, 65504]], 'int8': [[-128, 127]], 'uint64': [[0, 2**64 - 1]], 'bool': [[True, False]]}
    got = all_models.predict('several', {'signature_name': 'types', 'inputs': given})['outputs']
    assert got['half_out'][0][1] == 65504 and np.float16(got['half_out'][0][0]) == np.float16(0.1)
    assert {k: got[f'{k}_out'] for k in given if k != 'half'} == {k: v for k, v in given.items() if k != 'half'}


def test_strings(all_models):
    binary = base64.b64encode(b'\xff\x00ok').decode()
    body = {'signature_name': 'words', 'instances': ['a\u00e9"\\\n', {'b64': binary}]}
    got = all_models.predict('several', body)['predictions']
    assert [row['length'] for row in got] == [len('a\u00e9"\\\n'.encode()), 4]
    assert [base64.b64decode(row['copy_bytes']['b64']) for row in got] == ['a\u00e9"\\\n!'.encode(), b'\xff\x00ok!']
    assert got[0]['upper'] == 'A\u00e9"\\\n' and base64.b64decode(got[1]['upper']['b64']) == b'\xff\x00OK'


def test_numbers_that_json_lacks(all_models):
    code, text = all_models.call('/v1/models/several:predict', b'{"signature_name": "log", "inputs": [0, -1, Infinity, 1, NaN]}')
    assert code == 200
    y = text['outputs']['y']
    assert y[0] == -math.inf and math.isnan(y[1]) and y[2] == math.inf and y[3] == 0 and math.isnan(y[4])


def test_floats_survive(all_models):
    bits = np.random.default_rng(0).integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    values = np.concatenate([bits[np.isfinite(bits)], np.float32([0.1, 16777216, 1e-45, 3.4e38, 1e9, 123456.79, 1e-4, 9.999999e-5])])
    values = np.resize(values, (values.size // 3, 3))
    body = {'signature_name': 'pair', 'inputs': {'x': values.tolist(), 'n': [1] * len(values)}}
    want = np.where(np.abs(values) < np.finfo(np.float32).tiny, 0, values)  # products of what is subnormal are zero
    np.testing.assert_array_equal(np.float32(all_models.predict('several', body)['outputs']['scaled']), want)


def test_classify_and_regress(all_models):
    body = {'context': {'k': 1}, 'examples': [{'x': [0.5, 1]}, {'x': [2, 3.5], 'k': [10]}]}
    assert all_models.predict('examples', body, 'classify') == {
        'results': [[['cat', 2.0], ['dog', 3.0]], [['cat', 14.0], ['dog', 17.0]]]}
    assert all_models.predict('examples', {**body, 'signature_name': 'regress'}, 'regress') == {'results': [5.0, 31.0]}


def test_open_inference_protocol(all_models):
    s = all_models
    assert s.call('/v2/health/live') == (200, {'live': True}) and s.call('/v2/health/ready') == (200, {'ready': True})
    assert s.call('/v2/models/dense/ready')[0] == 200 and s.call('/v2/models/dense/versions/9/ready')[0] == 404
    assert s.call('/v2/models/dense')[1]['inputs'] == [{'name': 'x', 'datatype': 'FP32', 'shape': [-1, 4]}]
    body = {'id': 'me', 'inputs': [{'name': 'x', 'shape': [2, 4], 'datatype': 'FP32', 'data': list(range(8))}], 'outputs': [{'name': 'y'}]}
    code, answer = s.call('/v2/models/dense/versions/2/infer', body)
    assert code == 200 and answer == {'model_name': 'dense', 'model_version': '2', 'id': 'me',
                                      'outputs': [{'name': 'y', 'datatype': 'FP32', 'shape': [2, 1], 'data': [12.0, 44.0]}]}
    body['inputs'][0]['shape'] = [3, 4]
    assert s.call('/v2/models/dense/infer', body)[0] == 400


def test_pages(all_models):
    assert all_models.call('/healthz')[0] == 200 and all_models.call('/readyz') == (200, {'ready': True})
    all_models.predict('dense', {'instances': [[1, 1, 1, 1]]})
    for path in ('/metrics', '/monitoring/prometheus/metrics'):
        text = all_models.call(path)[1]
        assert re.search(r'^:tensorflow:serving:request_count\{model_name="dense",API="REST",entrypoint="Predict",status="OK"\} \d+$', text, re.M)
        assert 'weir_serve_version_state{model_name="dense",version="3",state="AVAILABLE"} 1' in text


@pytest.mark.parametrize('path, body, code, words', [
    ('/v1/models/none:predict', {'instances': [1]}, 404, 'Servable not found for request: Latest(none)'),
    ('/v1/models/dense/versions/9:predict', {'instances': [1]}, 404, 'Specific(dense, 9)'),
    ('/v1/models/dense/labels/x:predict', {'instances': [1]}, 400, 'label: x'),
    ('/v1/models/dense/versions/-1:predict', {'instances': [1]}, 400, 'Malformed request'),
    ('/v1/models/dense/versions/x:predict', {'instances': [1]}, 400, 'Malformed request: POST'),
    ('/v1/models/dense:train', {'instances': [1]}, 400, 'Malformed request'),
    ('/v1/models/:predict', {'instances': [1]}, 400, 'Malformed request'),
    ('/v1/models/../models/dense:predict', {'instances': [1]}, 400, 'Malformed request'),
    ('/v1/nothing', None, 400, 'Malformed request: GET /v1/nothing'),
    ('/nothing', None, 404, 'no such page'),
    ('/v1/models/none', None, 404, 'Could not find any versions of model none'),
    ('/v1/models/none/metadata', None, 404, 'Servable not found'),
    ('/v1/models/dense:predict', {'instances': [[1, 1, 1, 1]], 'signature_name': 'no'}, 400, 'Serving signature name: "no" not found'),
    ('/v1/models/dense:predict', {'instances': []}, 400, 'empty'),
    ('/v1/models/dense:predict', {'instances': [[1, 2, 3, 4], [1, 2]]}, 400, 'differ in length'),
    ('/v1/models/dense:predict', {'instances': [[1, 2, 3, 4], 5]}, 400, 'differ in length'),
    ('/v1/models/dense:predict', {'instances': [['a', 'b', 'c', 'd']]}, 400, 'JSON value "a" is not of expected type: float'),
    ('/v1/models/dense:predict', {'instances': [[1, 2, 3, None]]}, 400, 'null'),
    ('/v1/models/dense:predict', {'instances': [[1, 2, 3]]}, 400, "input 'x' is float[?,4], not float[1,3]"),
    ('/v1/models/dense:predict', {'instances': [{'z': [1, 2, 3, 4]}]}, 400, "no input 'z'; it has 'x'"),
    ('/v1/models/dense:predict', {'instances': [{'x': [1, 2, 3, 4]}, {}]}, 400, 'same inputs'),
    ('/v1/models/dense:predict', {'instances': [1], 'inputs': [1]}, 400, 'both'),
    ('/v1/models/dense:predict', {'signature_name': ''}, 400, 'neither'),
    ('/v1/models/dense:predict', [1], 400, 'expected an object'),
    ('/v1/models/dense:predict', b'', 400, 'not the end'),
    ('/v1/models/dense:predict', b'{"instances": [[1, 2, 3, 4]]} x', 400, "expected the end, not 'x'"),
    ('/v1/models/dense:predict', b'{"instances": [[1, 2, 3, 04]]}', 400, 'JSON: line 1'),
    ('/v1/models/several:predict', {'instances': [[1]], 'signature_name': 'pair'}, 400, 'by their names'),
    ('/v1/models/several:predict', {'inputs': {'x': [[1, 2, 3]]}, 'signature_name': 'pair'}, 400, "'n' is missing"),
    ('/v1/models/several:predict', {'instances': [1.5], 'signature_name': 'spin'}, 400, 'JSON value 1.5 is not of expected type: int32'),
    ('/v1/models/several:predict', {'instances': [{'b64': '@'}], 'signature_name': 'words'}, 400, 'base64'),
    ('/v1/models/several:predict', {'instances': ['x'], 'signature_name': 'parse'}, 400, 'x'),
    ('/v1/models/several:predict', {'instances': [1.0], 'signature_name': 'log'}, 400, 'no shape information'),
    ('/v1/models/dense:classify', {'examples': [{}]}, 400, 'Expected classify signature method_name'),
    ('/v1/models/examples:classify', {'examples': []}, 400, 'empty'),
    ('/v1/models/examples:classify', {'examples': [{'x': ['a', 1]}]}, 400, 'not both'),
    ('/v1/models/examples:classify', {'examples': [{'x': {'y': 1}}]}, 400, 'a string'),
    ('/v1/models/examples:classify', {'examples': [{'k': 1}]}, 400, 'x'),
])
def test_errors(all_models, path, body, code, words):
    got, answer = all_models.call(path, body)
    assert got == code and list(answer) == ['error'] and words in answer['error'], answer


def test_hostile_json(all_models):
    s = all_models
    connection = http.client.HTTPConnection('127.0.0.1', s.rest_port, timeout=PATIENCE)

    def post(body):
        connection.request('POST', '/v1/models/several:predict', body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    good = b'{"signature_name":"words","instances":["a\\u00e9",{"b64":"aGk="},"\\ud83d\\ude00"]}'
    assert post(good)[0] == 200
    for size in range(len(good)):
        assert post(good[:size])[0] == 400, good[:size]
    rng = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        assert post(bytes(damaged))[0] in (200, 400)
    for deep in (b'[' * 100000, b'{"instances":' + b'[' * 1000 + b']' * 1000 + b'}', b'{"a":' * 5000, b'{"instances":[1e999]}',
                 b'{"instances":["\\ud800"]}', b'{"instances":["\x01"]}'):
        assert post(deep)[0] == 400
    assert post(good)[0] == 200
    connection.close()


# ---- HTTP ----

def raw(s, data, parts=()):
    with socket.create_connection(('127.0.0.1', s.rest_port), PATIENCE) as connection:
        connection.sendall(data)
        for part in parts:
            time.sleep(0.01)
            connection.sendall(part)
        answer = b''
        while part := connection.recv(65536):
            answer += part
        return answer


def test_http(all_models):
    body = b'{"instances": [[1, 1, 1, 1]]}'
    head = b'POST /v1/models/dense:predict HTTP/1.1\r\n'
    close = b'Connection: close\r\n'
    chunks = b'5;x=y\r\n' + body[:5] + b'\r\n' + b'%x\r\n' % (len(body) - 5) + body[5:] + b'\r\n0\r\n\r\n'
    assert raw(all_models, head + close + b'Transfer-Encoding: chunked\r\n\r\n', [chunks[:3], chunks[3:20], chunks[20:]]).endswith(b'[[12.0]]}\n')
    sized = b'Content-Length: %d\r\n' % len(body)
    told = raw(all_models, head + close + sized + b'Expect: 100-continue\r\n\r\n', [body])
    assert told.startswith(b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n') and told.endswith(b'[[12.0]]}\n')
    piped = raw(all_models, (head + sized + b'\r\n' + body) * 3 + b'GET /healthz HTTP/1.0\r\n\r\n')
    assert piped.count(b'[[12.0]]') == 3 and piped.count(b'200 OK') == 4
    assert raw(all_models, head + b'Content-Length: 2000000\r\n\r\n' + b' ' * 100000).startswith(b'HTTP/1.1 413')
    assert raw(all_models, head + b'Transfer-Encoding: chunked\r\n\r\nfffffff\r\n').startswith(b'HTTP/1.1 413')
    assert raw(all_models, b'HEAD /v1/models/dense HTTP/1.1\r\n' + close + b'\r\n').endswith(b'\r\n\r\n')
    slow = [socket.create_connection(('127.0.0.1', all_models.rest_port)) for _ in range(50)]
    for connection in slow:
        connection.sendall(head + sized + b'\r\n' + body[:4])
    assert all_models.predict('dense', {'instances': [[1, 1, 1, 1]]}) == {'predictions': [[12.0]]}
    for connection in slow:
        connection.close()
    all_models.wait_until(lambda: all_models.call('/healthz')[0] == 200)


# ---- gRPC ----

def predict_request(model, signature='', version=None, **inputs):
    request = pb.PredictRequest(model_spec=pb.ModelSpec(name=model, signature_name=signature))
    if version:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def test_grpc_predict(models, all_models):
    x = np.random.default_rng(2).normal(size=(300, 4, 4)).astype(np.float32)
    metadata = all_models.call('/v1/models/keras/metadata')[1]['metadata']['signature_def']['signature_def']['serving_default']
    (given,), (asked,) = metadata['inputs'], metadata['outputs']
    answer = all_models.rpc('Predict', predict_request('keras', **{given: x}), pb.PredictResponse)
    np.testing.assert_allclose(tf.make_ndarray(answer.outputs[asked]), KERAS['model'](x).numpy(), rtol=1e-5, atol=1e-6)
    assert (answer.model_spec.name, answer.model_spec.version.value, answer.model_spec.signature_name) == ('keras', 1, 'serving_default')
    request = predict_request('several', 'words', text=[b'ab', b'\xff'])
    request.output_filter.extend(['upper', 'length'])
    answer = all_models.rpc('Predict', request, pb.PredictResponse)
    assert sorted(answer.outputs) == ['length', 'upper']
    assert tf.make_ndarray(answer.outputs['upper']).tolist() == [b'AB', b'\xff']
    assert tf.make_ndarray(answer.outputs['length']).tolist() == [2, 1]


def test_grpc_examples(all_models):
    def example(**features):
        lists = {k: tf.train.Feature(float_list=tf.train.FloatList(value=v)) if k == 'x' else
                 tf.train.Feature(int64_list=tf.train.Int64List(value=v)) for k, v in features.items()}
        return tf.train.Example(features=tf.train.Features(feature=lists))
    request = pb.ExamplesRequest(model_spec=pb.ModelSpec(name='examples'))
    request.input.example_list.examples.extend([example(x=[1, 2]), example(x=[3, 4], k=[5])])
    answer = all_models.rpc('Classify', request, pb.ClassificationResponse)
    got = [[(c.label, c.score) for c in item.classes] for item in answer.result.classifications]
    assert got == [[('cat', 2.0), ('dog', 4.0)], [('cat', 11.0), ('dog', 13.0)]]
    request = pb.ExamplesRequest(model_spec=pb.ModelSpec(name='examples', signature_name='regress'))
    request.input.example_list_with_context.examples.extend([example(x=[1, 2]), example(x=[1, 2], k=[1])])
    request.input.example_list_with_context.context.CopyFrom(example(k=[10]))
    answer = all_models.rpc('Regress', request, pb.RegressionResponse)
    assert [item.value for item in answer.result.regressions] == [26.0, 8.0]


def test_grpc_about_models(models, all_models):
    request = pb.GetModelMetadataRequest(model_spec=pb.ModelSpec(name='several'), metadata_field=['signature_def'])
    answer = all_models.rpc('GetModelMetadata', request, pb.GetModelMetadataResponse)
    signatures = pb.SignatureDefMap()
    assert answer.metadata['signature_def'].Unpack(signatures) and answer.model_spec.version.value == 1
    meta_graph = loader_impl.parse_saved_model(str(models / 'several' / '1')).meta_graphs[0]
    for name in SEVERAL:
        for kind in ('inputs', 'outputs'):
            got, want = getattr(signatures.signature_def[name], kind), getattr(meta_graph.signature_def[name], kind)
            assert {k: (v.name, v.dtype, v.tensor_shape) for k, v in got.items()} == {k: (v.name, v.dtype, v.tensor_shape) for k, v in want.items()}
    request = pb.GetModelStatusRequest(model_spec=pb.ModelSpec(name='dense'))
    answer = all_models.rpc('GetModelStatus', request, pb.GetModelStatusResponse, 'ModelService')
    assert [(v.version, v.state) for v in answer.model_version_status] == [(3, 30), (2, 30), (1, 10)]
    with grpc.insecure_channel(f'127.0.0.1:{all_models.port}') as channel:
        check = channel.unary_unary('/grpc.health.v1.Health/Check')
        assert check(b'', timeout=PATIENCE) == b'\x08\x01' and check(b'\n%c%s' % (36, b'tensorflow.serving.PredictionService'), timeout=PATIENCE)


def test_grpc_errors(all_models):
    bad_shape = predict_request('dense', x=np.zeros((1, 4), np.float32))
    bad_shape.inputs['x'].tensor_shape.dim[0].size = 1 << 40
    cases = [(predict_request('none', x=[1.0]), 'NOT_FOUND', 'Latest(none)'),
             (predict_request('dense', version=9, x=[1.0]), 'NOT_FOUND', 'Specific(dense, 9)'),
             (predict_request('dense', 'no', x=[1.0]), 'INVALID_ARGUMENT', 'no'),
             (predict_request('dense', z=[1.0]), 'INVALID_ARGUMENT', "no input 'z'"),
             (predict_request('dense', x=[1]), 'INVALID_ARGUMENT', 'int32[1]'),
             (predict_request('dense'), 'INVALID_ARGUMENT', "'x' is missing"),
             (pb.PredictRequest(), 'INVALID_ARGUMENT', 'ModelSpec'),
             (bad_shape, 'INVALID_ARGUMENT', "input 'x'")]
    for request, code, words in cases:
        with pytest.raises(grpc.RpcError) as error:
            all_models.rpc('Predict', request, pb.PredictResponse)
        assert error.value.code().name == code and words in error.value.details()
    with pytest.raises(grpc.RpcError) as error:
        all_models.rpc('MultiInference', pb.PredictRequest(), pb.PredictResponse)
    assert error.value.code().name == 'UNIMPLEMENTED'
    good = predict_request('dense', x=np.ones((2, 4), np.float32)).SerializeToString()
    with grpc.insecure_channel(f'127.0.0.1:{all_models.port}') as channel:
        call = channel.unary_unary('/tensorflow.serving.PredictionService/Predict')
        for size in range(len(good)):
            with pytest.raises(grpc.RpcError) as error:
                call(good[:size], timeout=PATIENCE)
            assert error.value.code().name in ('INVALID_ARGUMENT', 'NOT_FOUND', 'DATA_LOSS')
        assert call(good, timeout=PATIENCE)


# ---- versions ----

def test_versions_come_and_go_under_load(models, serve, tmp_path):
    folder = tmp_path / 'dense'
    folder.mkdir()
    shutil.copytree(models / 'dense' / '1', folder / '1')
    s = serve(f'--model={folder}', '--poll-ms=20', '--max-batch=8')
    is_over, seen, failed = threading.Event(), [], []

    def ask():
        connection = http.client.HTTPConnection('127.0.0.1', s.rest_port, timeout=PATIENCE)
        while not is_over.is_set():
            connection.request('POST', '/v1/models/dense:predict', b'{"instances": [[1, 1, 1, 1]]}')
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                seen.append(json.loads(text)['predictions'][0][0] / 4)
            else:
                failed.append(text)

    def versions():
        return {int(v['version']): (v['state'], v['status']['error_code']) for v in s.call('/v1/models/dense')[1]['model_version_status']}

    def add(version, source):
        shutil.copytree(source, tmp_path / 'new')
        (tmp_path / 'new').rename(folder / str(version))
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        s.wait_until(lambda: 1 in seen)
        add(2, models / 'dense' / '2')
        s.wait_until(lambda: versions().get(1, ('END',))[0] == 'END' and seen[-1] == 2)
        add(3, models / 'dense' / '3')  # damaged: the old one goes on
        (folder / '4').mkdir()
        (folder / '4' / 'saved_model.pb').write_bytes(b'\x08\x01\x12\xff\xff')
        s.wait_until(lambda: versions().get(4, ('', 'OK'))[1] != 'OK' and seen[-1] == 3)
        assert versions()[4][0] == 'END' and versions()[3] == ('AVAILABLE', 'OK')
        shutil.rmtree(folder / '3')
        shutil.rmtree(folder / '4')
        s.wait_until(lambda: seen[-1] == 2)  # what is left serves again
    finally:
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert not failed and set(seen) == {1, 2, 3}
    assert s.end() == 0 and 'version 4 does not load' in s.errors


def test_models_that_do_not_load(tmp_path):
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'bad' / '1').mkdir(parents=True)
    (tmp_path / 'bad' / '1' / 'saved_model.pb').write_bytes(b'\xff')
    for args, code, words in [([f'--model={tmp_path}/none'], 1, 'none'), ([f'--model={tmp_path}/empty'], 1, 'has no versions'),
                              ([f'--model={tmp_path}/bad'], 1, "model 'bad' version 1"), ([], 2, 'no --model'), (['--model=a b=/x'], 2, 'no name'),
                              (['--model=a=/x', '--model=a=/y'], 2, 'two models'), (['--model=a', '--max-batch=x'], 2, 'no number')]:
        done = subprocess.run([WEIR, 'serve', '--port=0', '--rest-port=0', *args], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == code and words in done.stderr, done.stderr


def test_warm_up(models, serve, tmp_path):
    shutil.copytree(models / 'dense' / '1', tmp_path / 'm' / '1')
    extra = tmp_path / 'm' / '1' / 'assets.extra'
    extra.mkdir()
    log = pb.PredictionLog(predict_log=pb.PredictLog(request=predict_request('any', x=np.ones((1, 4), np.float32))))
    with tf.io.TFRecordWriter(str(extra / 'tf_serving_warmup_requests')) as writer:
        writer.write(log.SerializeToString())
    assert serve(f'--model={tmp_path}/m').predict('m', {'instances': [[1, 1, 1, 1]]}) == {'predictions': [[4.0]]}
    with open(extra / 'tf_serving_warmup_requests', 'ab') as file:
        file.write(b'what is no record at all')
    with pytest.raises(AssertionError, match='warm-up request 2'):
        Serve(f'--model={tmp_path}/m')
    assert serve(f'--model={models}/several', '--warm-up').call('/readyz')[0] == 200


# ---- batches ----

def test_batches(models, serve):
    s = serve(f'--model={models}/several', '--max-batch=16', '--batch-timeout-us=20000')
    texts = [str(i) if i % 7 else f'bad{i}' for i in range(64)]

    def ask(text):
        return s.call('/v1/models/several:predict', {'signature_name': 'parse', 'instances': [text]})
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for text, (code, answer) in zip(texts, pool.map(ask, texts)):
            if text.startswith('bad'):  # nobody else fails for it
                assert code == 400 and text in answer['error']
            else:
                assert (code, answer) == (200, {'predictions': [float(text)]})
        rows = list(pool.map(lambda i: s.predict('several', {'signature_name': 'words', 'instances': [f'w{i}'] * (i % 4 + 1)}), range(40)))
    for i, answer in enumerate(rows):
        assert [row['upper'] for row in answer['predictions']] == [f'W{i}'] * (i % 4 + 1)
    assert s.metric('weir_serve_batches_total') < s.metric('weir_serve_batched_requests_total')
    # What has no row for each row of the inputs runs alone.
    assert s.predict('several', {'signature_name': 'log', 'inputs': [1, 1]})['outputs']['total'] == 2.0
    assert s.end() == 0


# ---- limits, secrets, the end ----

ENDLESS = {'signature_name': 'spin', 'inputs': 2**31 - 1}


def test_time_and_number_of_requests(models, serve):
    s = serve(f'--model={models}/several', '--request-timeout-ms=1500', '--max-requests=1')
    codes, ends = set(), set()

    def ask():
        codes.add(s.call('/v1/models/several:predict', {'signature_name': 'spin', 'inputs': 1})[0])
        try:
            s.rpc('Predict', predict_request('several', 'spin', turns=1), pb.PredictResponse)
        except grpc.RpcError as error:
            codes.add(error.code().name)

    def is_refused():
        """Asks while another request is served; which of the two comes first is up to the scheduler."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            slow = pool.submit(s.call, '/v1/models/several:predict', ENDLESS)
            while not slow.done():
                ask()
            ends.add(slow.result(PATIENCE)[0])
        return {429, 'RESOURCE_EXHAUSTED'} <= codes and 504 in ends
    s.wait_until(is_refused)
    assert codes <= {200, 429, 'RESOURCE_EXHAUSTED'} and ends <= {429, 504} and s.call('/healthz')[0] == 200
    assert s.predict('several', {'signature_name': 'spin', 'inputs': 5})['outputs'] == 5


def test_token_and_tls(models, serve, tmp_path):
    (tmp_path / 'token').write_text('a-secret-of-some-length\n')
    s = serve(f'--model={models}/dense', f'--token-file={tmp_path}/token')
    body = {'instances': [[1, 1, 1, 1]]}
    assert s.call('/v1/models/dense:predict', body)[0] == 401 and s.call('/metrics')[0] == 401 and s.call('/readyz')[0] == 200
    bearer = 'Bearer a-secret-of-some-length'
    assert s.call('/v1/models/dense:predict', body, headers={'Authorization': bearer}) == (200, {'predictions': [[12.0]]})
    request = predict_request('dense', x=np.ones((1, 4), np.float32))
    with pytest.raises(grpc.RpcError) as error:
        s.rpc('Predict', request, pb.PredictResponse)
    assert error.value.code().name == 'UNAUTHENTICATED'
    assert s.rpc('Predict', request, pb.PredictResponse, metadata=[('authorization', bearer)]).outputs
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', tmp_path / 'key',
                    '-out', tmp_path / 'cert', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'],
                   check=True, capture_output=True)
    for mutual in (False, True):
        s = serve(f'--model={models}/dense', f'--tls-cert={tmp_path}/cert', f'--tls-key={tmp_path}/key',
                  *([f'--tls-ca={tmp_path}/cert', '--tls-mutual'] if mutual else []))
        context = ssl.create_default_context(cafile=tmp_path / 'cert')
        if mutual:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                connection = http.client.HTTPSConnection('127.0.0.1', s.rest_port, timeout=PATIENCE, context=context)
                connection.request('GET', '/readyz')
                connection.getresponse()
            context.load_cert_chain(tmp_path / 'cert', tmp_path / 'key')
        connection = http.client.HTTPSConnection('127.0.0.1', s.rest_port, timeout=PATIENCE, context=context)
        for _ in range(2):
            connection.request('POST', '/v1/models/dense:predict', json.dumps(body))
            assert json.loads(connection.getresponse().read()) == {'predictions': [[12.0]]}
        assert s.end() == 0


def test_ends_in_order(models, serve):
    s = serve(f'--model={models}/several')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(s.call, '/v1/models/several:predict', {'signature_name': 'spin', 'inputs': 300000})
        time.sleep(0.1)
        s.process.send_signal(signal.SIGTERM)
        code, answer = running.result(PATIENCE)
    assert (code, answer) == (200, {'outputs': 300000})
    assert s.process.wait(PATIENCE) == 0  # by that one signal


def test_busy_port(models):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        done = subprocess.run([WEIR, 'serve', f'--model={models}/dense', '--port=0', f'--rest-port={taken.getsockname()[1]}'],
                              capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3
