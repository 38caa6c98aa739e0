"""DecodeJSONExample."""
import numpy as np


def feature(text):
    return '{"features":{"feature":{"a":%s}}}' % text


def cases(check, rng):
    texts = ['{}', '', 'null', '[]', '1', '{"x":1}', '{"features":null}', '{"features":{}}', '{"features":[]}', '{"features":{},"features":{}}', ' {"features":{}} x',
             '{"features":{"feature":null}}', '{"features":{"feature":[]}}', '{"features":{"x":{}}}', '{"features":{"feature":{"b":{},"a":{},"c":{}}}}',
             '{"features":{"feature":{"a":{},"a":{}}}}', '{"features":{"feature":{"\u00e9\\u00e9\\n":{}}}}', '{"features":', '{"features":{"feature":{"a":{"int64List"}}}}',
             '{ "features" : { "feature" : {\n"a":{"floatList":{"value":[1]}} ,\t"b":{"int64_list":{"value":[2]}}} } }']
    texts += [feature(t) for t in ('null', '{}', '[]', '1', '{"x":1}', '{"int64List":null}', '{"int64List":{"value":[1]},"floatList":{"value":[1]}}',
                                   '{"int64List":null,"floatList":{"value":[1]}}', '{"int64List":{"x":1}}')]
    values = ['[]', '[1,2]', '1', 'null', '[null]', '["1"]', '[-2]', '[3.0]', '[1.5]', '[1e3]', '["1e3"]', '["1.5"]', '["x"]', '[true]', '[{}]', '[[1]]', '["NaN","Infinity","-Infinity"]',
              '[1e40]', '["1e40"]', '[9223372036854775807,-9223372036854775808]', '[9223372036854775808]', '["9223372036854775808"]', '[0.1]', '[-0.0]', '["YWJj"]', '["_-8="]',
              '["/+8="]', '[""]', '["a"]', '["!"]', '["YQ"]', '["YQ=="]', '["Y W"]', '{"value":1}', '["nan"]', '[" 1"]', '["0x10"]', '[1e-50]']
    texts += [feature('{"%s":{"value":%s}}' % (kind, v)) for kind in ('int64List', 'floatList', 'bytesList', 'int64_list') for v in values]
    for text in texts:
        check('DecodeJSONExample', [text])
    # Not JSON, but read by protobuf's parser.
    for text in ("{'features':{}}", '{features:{}}', '{"features":{},}'):
        check('DecodeJSONExample', [text], weir_only_fails=True)
    good = np.array([t.encode() for t in ('{}', feature('{}'), '{"features":{}}', feature('{"floatList":{"value":[1,2]}}'))], object)
    check('DecodeJSONExample', [good])
    check('DecodeJSONExample', [good.reshape(2, 2)])
    check('DecodeJSONExample', [good[:0].reshape(0, 3)])
    check('DecodeJSONExample', [np.array([b'{}', b'{'], object)])
