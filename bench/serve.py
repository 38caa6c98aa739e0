"""Requests a second and latency of a Keras MNIST model: weir serve beside a Python server on TensorFlow, in turns, under the same load.

usage: serve.py [--seconds S] [--connections N] [--rounds N] [--build DIR] [--batch N]

The load is made by wrk or hey where one is installed (apt-get install wrk), else by threads of Python, which then are the limit.
Needs tensorflow. Prints one JSON line a round and system.
"""
import argparse
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent


def save_model(folder):
    """In a process of its own, so that TensorFlow takes no memory here."""
    code = f'''import tensorflow as tf
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((28, 28)), layers.Flatten(), layers.Dense(128, 'relu'), layers.Dense(10, 'softmax')])
model.export({str(folder / '1')!r}, verbose=False)'''
    subprocess.run([sys.executable, '-c', code], check=True, stderr=subprocess.DEVNULL)


def serve_with_tensorflow(folder):
    """The Python server: a thread a connection, a call of the loaded signature a request."""
    import tensorflow as tf
    run = tf.saved_model.load(folder + '/1').signatures['serving_default']
    name = list(run.structured_input_signature[1])[0]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        disable_nagle_algorithm = True

        def do_POST(self):
            rows = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['instances']
            answer = next(iter(run(**{name: tf.constant(rows, tf.float32)}).values())).numpy().tolist()
            body = json.dumps({'predictions': answer}).encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    print(f'REST on port {server.server_port}', flush=True)
    server.serve_forever()


def load_wrk(url, body, a):
    with tempfile.NamedTemporaryFile('w', suffix='.lua') as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = [==[{body}]==]\n")  # JSON ends in brackets of its own
        script.flush()
        text = subprocess.run(['wrk', '--latency', '-t1', f'-c{a.connections}', f'-d{a.seconds}s', '-s', script.name, url],
                              capture_output=True, text=True, check=True).stdout
    scale = {'us': 1e-3, 'ms': 1, 's': 1e3}
    value, unit = re.search(r'99%\s+([\d.]+)(us|ms|s)', text).groups()
    failed = re.search(r'Non-2xx or 3xx responses: (\d+)', text)
    return float(re.search(r'Requests/sec:\s+([\d.]+)', text)[1]), float(value) * scale[unit], int(failed[1]) if failed else 0


def load_hey(url, body, a):
    text = subprocess.run(['hey', '-m', 'POST', '-d', body, '-z', f'{a.seconds}s', '-c', str(a.connections), url],
                          capture_output=True, text=True, check=True).stdout
    codes = {int(code): int(count) for code, count in re.findall(r'\[(\d+)\]\s+(\d+) responses', text)}
    return (float(re.search(r'Requests/sec:\s+([\d.]+)', text)[1]), float(re.search(r'99%+ in ([\d.]+) secs', text)[1]) * 1e3,
            sum(count for code, count in codes.items() if code != 200))


def load_python(url, body, a):
    import http.client
    host, path = re.fullmatch(r'http://([^/]+)(/.*)', url).groups()
    times, failed, end = [], [], time.perf_counter() + a.seconds

    def ask():
        connection = http.client.HTTPConnection(host)
        while (begin := time.perf_counter()) < end:
            connection.request('POST', path, body)
            answer = connection.getresponse()
            answer.read()
            (times if answer.status == 200 else failed).append(time.perf_counter() - begin)
    threads = [threading.Thread(target=ask) for _ in range(a.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / a.seconds, sorted(times)[int(len(times) * .99)] * 1e3, len(failed)


def measure(system, command, a, body):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = f"http://127.0.0.1:{re.search('REST on port ([0-9]+)', process.stdout.readline())[1]}/v1/models/mnist:predict"
        for _ in range(20):
            urllib.request.urlopen(url, body.encode()).read()
        tool = next((name for name in ('wrk', 'hey') if shutil.which(name)), 'python')
        rate, p99_ms, failed = globals()[f'load_{tool}'](url, body, a)
        print(json.dumps(dict(system=system, load=tool, connections=a.connections, requests_s=round(rate, 1), p99_ms=round(p99_ms, 3),
                              failed=failed)), flush=True)
        if failed:
            sys.exit(f'{failed} requests failed: the rate is that of errors')
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=int, default=5)
    parser.add_argument('--connections', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--build', default=str(ROOT / 'build' / 'release'))
    parser.add_argument('--batch', type=int, default=0)
    parser.add_argument('--tensorflow-server', help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.tensorflow_server:
        serve_with_tensorflow(a.tensorflow_server)
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    body = json.dumps({'instances': [[[round((i * 28 + k) / 784, 3) for k in range(28)] for i in range(28)]]})
    with tempfile.TemporaryDirectory() as folder:
        save_model(pathlib.Path(folder))
        weir = [f'{a.build}/cli/weir', 'serve', f'--model=mnist={folder}', '--port=0', '--rest-port=0', f'--max-batch={a.batch}']
        for _ in range(a.rounds):
            measure('weir serve', weir, a, body)
            measure('python on tensorflow', [sys.executable, __file__, '--tensorflow-server', folder], a, body)


if __name__ == '__main__':
    main()
