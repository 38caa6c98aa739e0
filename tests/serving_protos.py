"""TensorFlow Serving's messages, described here as far as tests need them: its package does not go with this TensorFlow."""
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2  # noqa: F401: the pool needs them
from tensorflow.core.example import example_pb2  # noqa: F401
from tensorflow.core.framework import tensor_pb2  # noqa: F401
from tensorflow.core.protobuf import meta_graph_pb2  # noqa: F401

PACKAGE = 'tensorflow.serving'
SCALARS = {'string': 9, 'bytes': 12, 'int64': 3, 'int32': 5, 'float': 2}
# A field is "name number type", repeated with a "*", a map from strings with a "%".
MESSAGES = {
    'ModelSpec': ['name 1 string', 'version 2 .google.protobuf.Int64Value', 'signature_name 3 string', 'version_label 4 string'],
    'PredictRequest': ['model_spec 1 ModelSpec', 'inputs 2 %.tensorflow.TensorProto', 'output_filter 3 *string'],
    'PredictResponse': ['outputs 1 %.tensorflow.TensorProto', 'model_spec 2 ModelSpec'],
    'ExampleList': ['examples 1 *.tensorflow.Example'],
    'ExampleListWithContext': ['examples 1 *.tensorflow.Example', 'context 2 .tensorflow.Example'],
    'Input': ['example_list 1 ExampleList', 'example_list_with_context 2 ExampleListWithContext'],
    'ExamplesRequest': ['model_spec 1 ModelSpec', 'input 2 Input'],  # ClassificationRequest and RegressionRequest
    'Class': ['label 1 string', 'score 2 float'],
    'Classifications': ['classes 1 *Class'],
    'ClassificationResult': ['classifications 1 *Classifications'],
    'ClassificationResponse': ['result 1 ClassificationResult', 'model_spec 2 ModelSpec'],
    'Regression': ['value 1 float'],
    'RegressionResult': ['regressions 1 *Regression'],
    'RegressionResponse': ['result 1 RegressionResult', 'model_spec 2 ModelSpec'],
    'GetModelMetadataRequest': ['model_spec 1 ModelSpec', 'metadata_field 2 *string'],
    'GetModelMetadataResponse': ['model_spec 1 ModelSpec', 'metadata 2 %.google.protobuf.Any'],
    'SignatureDefMap': ['signature_def 1 %.tensorflow.SignatureDef'],
    'GetModelStatusRequest': ['model_spec 1 ModelSpec'],
    'StatusProto': ['error_code 1 int32', 'error_message 2 string'],
    'ModelVersionStatus': ['version 1 int64', 'state 2 int32', 'status 3 StatusProto'],
    'GetModelStatusResponse': ['model_version_status 1 *ModelVersionStatus'],
    'PredictLog': ['request 1 PredictRequest'],
    'PredictionLog': ['predict_log 6 PredictLog'],
}


def _set_type(field, name):
    if name in SCALARS:
        field.type = SCALARS[name]
    else:
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = name if name[0] == '.' else f'.{PACKAGE}.{name}'


def _add_map(message, field, value):
    entry = message.nested_type.add(name=''.join(part.capitalize() for part in field.name.split('_')) + 'Entry')
    entry.options.map_entry = True
    for number, (name, kind) in enumerate([('key', 'string'), ('value', value)], 1):
        _set_type(entry.field.add(name=name, number=number, label=1), kind)
    _set_type(field, f'.{PACKAGE}.{message.name}.{entry.name}')


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name='weir_tests/serving.proto', package=PACKAGE, syntax='proto3', dependency=[
        'google/protobuf/any.proto', 'google/protobuf/wrappers.proto', 'tensorflow/core/example/example.proto',
        'tensorflow/core/framework/tensor.proto', 'tensorflow/core/protobuf/meta_graph.proto'])
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            field_name, number, kind = text.split()
            field = message.field.add(name=field_name, number=int(number), label=3 if kind[0] in '*%' else 1)
            if kind[0] == '%':
                _add_map(message, field, kind[1:])
            else:
                _set_type(field, kind.lstrip('*'))
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f'{PACKAGE}.{name}')) for name in MESSAGES}


globals().update(_classes())
