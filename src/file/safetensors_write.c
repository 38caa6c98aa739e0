// safetensors_write.c — Writing safetensors files.
#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "file/coding.h"
#include "file/replacement.h"
#include "file/safetensors_types.h"
#include "tensor/tensor.h"
#include "weir/argument.h"

enum { kAlignment = 64 };  // of the first tensor's bytes in the file

static weir_status_t* check_tensors(const char* const* names, weir_tensor_t* const* tensors,
                                    int count) {
  weir_map_t seen = {0};
  weir_status_t* status = NULL;
  for (int i = 0; i < count && !status; ++i) {
    if (!names[i] || !tensors[i])
      status = WEIR_STATUS(INVALID_ARGUMENT, "tensor %d of %d has no name or no value", i, count);
    else if (strcmp(names[i], "__metadata__") == 0)
      status = WEIR_STATUS(INVALID_ARGUMENT, "'__metadata__' cannot be the name of a tensor");
    else if (weir_map_find(&seen, weir_view_of(names[i])))
      status = WEIR_STATUS(INVALID_ARGUMENT, "tensor '%s' is given twice", names[i]);
    else if (!weir_safetensors_type_of(weir_tensor_type(tensors[i])))
      status = WEIR_STATUS(UNIMPLEMENTED, "tensor '%s': safetensors files have no type for %s",
                           names[i], weir_dtype_name(weir_tensor_type(tensors[i])));
    else status = weir_map_put(&seen, weir_view_of(names[i]), tensors[i]);
  }
  weir_map_free(&seen);
  return status;
}

static void put_notes(const weir_safetensors_note_t* notes, int count, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "\"__metadata__\":{");
  for (int i = 0; i < count; ++i) {
    if (i) weir_strbuf_putc(out, ',');
    weir_json_put_string(notes[i].key, out);
    weir_strbuf_putc(out, ':');
    weir_json_put_string(notes[i].value, out);
  }
  weir_strbuf_putc(out, '}');
}

static void put_tensor(const char* name, const weir_tensor_t* tensor, size_t* at,
                       weir_strbuf_t* out) {
  const weir_safetensors_type_t* type = weir_safetensors_type_of(weir_tensor_type(tensor));
  weir_json_put_string(name, out);
  weir_strbuf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", type->name);
  for (int i = 0; i < tensor->rank; ++i)
    weir_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)tensor->dims[i]);
  size_t end = *at + weir_tensor_byte_size(tensor);
  weir_strbuf_printf(out, "],\"data_offsets\":[%zu,%zu]}", *at, end);
  *at = end;
}

// The tensors in the order in which they are written: those of large elements first, so that each
// is aligned.
static void put_header(const char* const* names, weir_tensor_t* const* tensors, const int* order,
                       int count, weir_strbuf_t* out) {
  size_t at = 0;
  for (int i = 0; i < count; ++i) {
    if (out->size > 1) weir_strbuf_putc(out, ',');
    put_tensor(names[order[i]], tensors[order[i]], &at, out);
  }
  weir_strbuf_putc(out, '}');
  while ((out->size + 8) % kAlignment) weir_strbuf_putc(out, ' ');
}

// A stable sort by size of element, largest first.
static void sort_by_size(weir_tensor_t* const* tensors, int count, int* order) {
  static const size_t kSizes[] = {16, 8, 4, 2, 1};
  int next = 0;
  for (size_t s = 0; s < WEIR_COUNT_OF(kSizes); ++s) {
    for (int i = 0; i < count; ++i) {
      if (weir_dtype_size(weir_tensor_type(tensors[i])) == kSizes[s]) order[next++] = i;
    }
  }
}

static weir_status_t* write_file(weir_writer_t* writer, weir_view_t header,
                                 weir_tensor_t* const* tensors, const int* order, int count) {
  uint8_t length[8];
  weir_encode64(length, header.size);
  WEIR_TRY(weir_writer_write(writer, length, sizeof length));
  WEIR_TRY(weir_writer_write(writer, header.data, header.size));
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* tensor = tensors[order[i]];
    if (tensor->count > 0)
      WEIR_TRY(weir_writer_write(writer, tensor->data, weir_tensor_byte_size(tensor)));
  }
  return NULL;
}

weir_status_t* weir_safetensors_save(const char* path, const char* const* names,
                                     weir_tensor_t* const* tensors, int count,
                                     const weir_safetensors_note_t* notes, int note_count) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_COUNT(count);
  WEIR_REQUIRE_COUNT(note_count);
  if (count > 0) WEIR_REQUIRE_ARG(names);
  if (count > 0) WEIR_REQUIRE_ARG(tensors);
  if (note_count > 0) WEIR_REQUIRE_ARG(notes);
  WEIR_TRY(check_tensors(names, tensors, count));
  weir_strbuf_t header = {0};
  weir_replacement_t file = {0};
  int* order = weir_alloc_array((size_t)count, sizeof(*order));
  weir_status_t* status = order ? NULL : weir_out_of_memory();
  if (status) goto done;
  sort_by_size(tensors, count, order);
  weir_strbuf_putc(&header, '{');
  if (note_count > 0) put_notes(notes, note_count, &header);
  put_header(names, tensors, order, count, &header);
  status = weir_strbuf_finish(&header);
  if (status) goto done;
  status = weir_replacement_begin(&file, path);
  if (!status) status = write_file(file.writer, weir_strbuf_view(&header), tensors, order, count);
  status = weir_replacement_end(&file, status);
done:
  weir_free(order);
  weir_strbuf_free(&header);
  return status;
}
