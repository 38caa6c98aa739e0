"""The process of a relay (relay.py): a gRPC server that passes calls on. A process of its own, for TensorFlow's client waits for
some answers with the interpreter's lock held. Commands and answers are pickles on stdin and stdout."""
import collections
import concurrent.futures
import pickle
import sys
import threading

import grpc

PATIENCE_S = 30


class Handler(grpc.GenericRpcHandler):
    def __init__(self, options):
        self.running, self.calls, self.replies = [], [], {}
        self.cleanups = collections.deque(maxlen=4)
        self.mu = threading.Lock()
        self.options = options
        self.channel = None  # none yet

    def connect(self, address):
        self.channel = grpc.insecure_channel(address, options=self.options)

    def service(self, details):
        def answer(data, context):
            method = details.method.rsplit('/', 1)[1]
            note = {'method': method, 'request': data, 'seconds': context.time_remaining(),
                    'metadata': dict(context.invocation_metadata())}
            with self.mu:
                self.running.append(note)
            reply = self.replies.get(method)
            code, text, response, trailers = reply or self.pass_on(details.method, data, context)
            with self.mu:
                self.running.remove(note)
                self.calls.append(dict(note, code=code, details=text, response=response, trailers=trailers))
            if code != 'OK':
                context.set_trailing_metadata([(k, v) for k, v in trailers.items() if k == 'grpc-status-details-bin'])
                context.set_code(grpc.StatusCode[code])
                context.set_details(text)
            return response
        return grpc.unary_unary_rpc_method_handler(answer)

    def pass_on(self, path, data, context):
        if path.endswith('/CleanupGraph'):
            self.cleanups.append((path, data))
        result = self.pass_one_on(path, data, context)
        if path.endswith('/RunGraph'):
            # Calls pass each other here, which they do not on a connection: one that its step's cleanup has overtaken would leave
            # a step behind.
            for cleanup, request in list(self.cleanups):
                self.channel.unary_unary(cleanup).future(request, timeout=PATIENCE_S)
        return result

    def pass_one_on(self, path, data, context):
        left = context.time_remaining()
        call = self.channel.unary_unary(path).future(data, timeout=min(left or PATIENCE_S, PATIENCE_S))
        if not context.add_callback(call.cancel):  # given up already
            call.cancel()
        try:
            return 'OK', '', call.result(), {}
        except grpc.FutureCancelledError:
            return 'CANCELLED', '', b'', {}
        except grpc.RpcError as e:
            return e.code().name, e.details(), b'', dict(e.trailing_metadata() or ())


def main():
    options = [('grpc.max_send_message_length', -1), ('grpc.max_receive_message_length', -1), ('grpc.so_reuseport', 0)]
    handler = Handler(options)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[handler], options=options)
    port = server.add_insecure_port('127.0.0.1:0')
    server.start()
    result = port
    while True:
        pickle.dump(result, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        try:
            command, *args = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        with handler.mu:
            result = list(handler.running if command == 'running' else handler.calls)
            if command == 'take':
                handler.calls.clear()
            if command == 'connect':
                handler.connect(args[0])
            if command == 'reply':
                handler.replies = args[0]
    server.stop(0)


if __name__ == '__main__':
    main()
