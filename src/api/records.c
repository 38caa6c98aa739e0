// records.c — Writing TFRecord files, and Examples into them.
#include "base/alloc.h"
#include "file/record.h"
#include "weir/input.h"
#include "wire/wire.h"

struct weir_record_writer_t {
  weir_writer_t* file;
};

weir_status_t* weir_record_writer_create(const char* path, weir_record_writer_t** out_writer) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_writer);
  weir_record_writer_t* writer = weir_calloc(1, sizeof(*writer));
  if (!writer) return weir_out_of_memory();
  weir_status_t* status = weir_writer_open(path, false, &writer->file);
  if (status) weir_free(writer);
  else *out_writer = writer;
  return status;
}

weir_status_t* weir_record_writer_write(weir_record_writer_t* writer, const void* data,
                                        size_t size) {
  if (size > 0) WEIR_REQUIRE_ARG(data);
  WEIR_REQUIRE_ARG(writer);
  return weir_record_write(writer->file, data, size);
}

weir_status_t* weir_record_writer_flush(weir_record_writer_t* writer) {
  WEIR_REQUIRE_ARG(writer);
  return weir_writer_flush(writer->file);
}

weir_status_t* weir_record_writer_close(weir_record_writer_t* take_writer) {
  if (!take_writer) return NULL;
  weir_status_t* status = weir_writer_close(take_writer->file);
  weir_free(take_writer);
  return status;
}

// ---- Examples: Example {features: Features {map<string, Feature>}} ----

enum { kFeatures = 1, kEntry = 1, kKey = 1, kValue = 2, kList = 1 };
enum { kBytesList = 1, kFloatList = 2, kInt64List = 3 };

struct weir_example_t {
  weir_strbuf_t features;  // a Features message
};

weir_status_t* weir_example_create(weir_example_t** out_example) {
  WEIR_REQUIRE_ARG(out_example);
  weir_example_t* example = weir_calloc(1, sizeof(*example));
  if (!example) return weir_out_of_memory();
  *out_example = example;
  return NULL;
}

void weir_example_destroy(weir_example_t* example) {
  if (!example) return;
  weir_strbuf_free(&example->features);
  weir_free(example);
}

void weir_example_clear(weir_example_t* example) {
  WEIR_ASSERT_ARG(example);
  example->features.size = 0;
  example->features.failed = false;
}

// Adds an entry of the map whose value is the list |kind| with the bytes |list| in it.
static void add_feature(weir_example_t* example, const char* name, uint32_t kind,
                        const weir_strbuf_t* list) {
  weir_strbuf_t* out = &example->features;
  if (list->failed) out->failed = true;
  size_t entry = weir_wire_begin(out, kEntry);
  weir_wire_put_string(out, kKey, name);
  size_t value = weir_wire_begin(out, kValue);
  weir_wire_put_bytes(out, kind, list->data, list->size);
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

void weir_example_floats(weir_example_t* example, const char* name, const float* values,
                         int64_t count) {
  if (count > 0) WEIR_ASSERT_ARG(values);
  WEIR_ASSERT_ARG(example);
  WEIR_ASSERT_ARG(name);
  weir_strbuf_t list = {0};  // packed; the element type is little-endian, as this machine is
  if (count > 0) weir_wire_put_bytes(&list, kList, values, (size_t)count * sizeof(*values));
  add_feature(example, name, kFloatList, &list);
  weir_strbuf_free(&list);
}

void weir_example_ints(weir_example_t* example, const char* name, const int64_t* values,
                       int64_t count) {
  if (count > 0) WEIR_ASSERT_ARG(values);
  WEIR_ASSERT_ARG(example);
  WEIR_ASSERT_ARG(name);
  weir_strbuf_t list = {0};
  size_t packed = weir_wire_begin(&list, kList);
  for (int64_t i = 0; i < count; ++i) weir_wire_put_varint(&list, (uint64_t)values[i]);
  weir_wire_end(&list, packed);
  add_feature(example, name, kInt64List, &list);
  weir_strbuf_free(&list);
}

void weir_example_bytes(weir_example_t* example, const char* name, const void* data, size_t size) {
  if (size > 0) WEIR_ASSERT_ARG(data);
  WEIR_ASSERT_ARG(example);
  WEIR_ASSERT_ARG(name);
  weir_strbuf_t list = {0};
  weir_wire_put_bytes(&list, kList, data, size);
  add_feature(example, name, kBytesList, &list);
  weir_strbuf_free(&list);
}

weir_status_t* weir_example_write(const weir_example_t* example, weir_record_writer_t* writer) {
  WEIR_REQUIRE_ARG(example);
  WEIR_REQUIRE_ARG(writer);
  weir_strbuf_t message = {0};
  weir_status_t* status = weir_strbuf_finish(&example->features);
  weir_wire_put_bytes(&message, kFeatures, example->features.data, example->features.size);
  if (!status) status = weir_strbuf_finish(&message);
  if (!status) status = weir_record_writer_write(writer, message.data, message.size);
  weir_strbuf_free(&message);
  return status;
}
