// reader_function.c — Whether a function reads files that its argument names: FunctionDef messages,
// walked over.
#include "ops/data/reader_function.h"

#include "base/string.h"
#include "wire/wire.h"

enum { kMaxDepth = 64 };  // of functions within functions; deeper ones are not looked at

// What a NodeDef says that matters here. Views into the message.
typedef struct node_t {
  weir_view_t op, first_input, function;  // the last: of attribute f
} node_t;

// The first field |number| of a message that holds bytes.
static weir_view_t field_of(weir_view_t message, uint32_t number) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader))
    if (reader.field == number && reader.type == WEIR_WIRE_BYTES) return reader.bytes;
  return weir_view("", 0);
}

static node_t read_node(weir_view_t message) {
  node_t node = {.op = field_of(message, 2),
                 .first_input = field_of(message, 3),
                 .function = weir_view("", 0)};
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != 5 || reader.type != WEIR_WIRE_BYTES) continue;
    if (!weir_view_is(field_of(reader.bytes, 1), "f")) continue;
    node.function = field_of(field_of(field_of(reader.bytes, 2), 10), 1);  // AttrValue.func.name
  }
  return node;
}

// |name|, or |name| with a version: "V2".
static bool is_version_of(weir_view_t op, const char* const* names) {
  for (; *names; ++names) {
    size_t size = strlen(*names);
    if (op.size < size || memcmp(op.data, *names, size) != 0) continue;
    if (op.size == size) return true;
    if (op.size < size + 2 || op.data[size] != 'V') continue;
    size_t at = size + 1;
    while (at < op.size && op.data[at] >= '0' && op.data[at] <= '9') ++at;
    if (at == op.size) return true;
  }
  return false;
}

static bool reads_files(weir_functions_t* functions, weir_view_t name, int depth) {
  static const char* const kReaders[] = {"FixedLengthRecordDataset", "TextLineDataset",
                                         "TFRecordDataset", NULL};
  static const char* const kMakers[] = {"FlatMapDataset", "InterleaveDataset",
                                        "LegacyParallelInterleaveDataset",
                                        "ParallelInterleaveDataset", NULL};
  if (depth > kMaxDepth) return false;
  weir_wire_reader_t reader = weir_wire_reader(functions->vtable->definition(functions, name));
  while (weir_wire_next(&reader)) {
    if (reader.field != 3 || reader.type != WEIR_WIRE_BYTES) continue;  // FunctionDef.node_def
    node_t node = read_node(reader.bytes);
    if (is_version_of(node.op, kReaders) && weir_view_starts_with(node.first_input, "args_0"))
      return true;
    if (is_version_of(node.op, kMakers) && reads_files(functions, node.function, depth + 1))
      return true;
  }
  return false;
}

bool weir_reads_files(weir_functions_t* functions, weir_view_t name) {
  return functions && functions->vtable->definition && reads_files(functions, name, 0);
}
