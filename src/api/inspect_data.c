// inspect_data.c — What is in files of arrays: .npy, .npz and other zip archives, safetensors.
#include "api/inspect.h"
#include "file/coding.h"
#include "file/fs.h"
#include "file/npy.h"

weir_status_t* weir_inspect_npy(weir_report_t* report, weir_view_t bytes) {
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t shape = {0}, values = {0};
  WEIR_TRY(weir_npy_parse(bytes, &tensor));
  weir_report_begin(report, "npy", "NumPy array");
  weir_report_type(report, tensor->dtype, tensor->rank, tensor->dims);
  weir_report_line(report, "%s %s\n", weir_dtype_name(tensor->dtype),
                   weir_report_shape(tensor->rank, tensor->dims, &shape));
  if (!report->is_json) weir_tensor_print(tensor, 4, &values);
  weir_report_line(report, "%.*s\n", WEIR_VIEW_ARG(weir_strbuf_view(&values)));
  weir_report_close(report, '}');
  weir_strbuf_free(&shape);
  weir_strbuf_free(&values);
  weir_tensor_release(tensor);
  return NULL;
}

// ---- zip archives: the directory at their end says what is in them ----

enum { END_SIZE = 22, ROW_SIZE = 46, END_MAGIC = 0x06054b50, ROW_MAGIC = 0x02014b50 };

static uint32_t short_at(const char* data) {
  return (uint32_t)(uint8_t)data[0] | (uint32_t)(uint8_t)data[1] << 8;
}

static weir_status_t* find_directory(weir_view_t bytes, weir_view_t* out_rows) {
  enum { COMMENT = 65535 };
  for (size_t back = END_SIZE; back <= bytes.size && back <= END_SIZE + COMMENT; ++back) {
    const char* end = bytes.data + bytes.size - back;
    if (weir_decode32(end) != END_MAGIC) continue;
    size_t size = weir_decode32(end + 12), offset = weir_decode32(end + 16);
    if (offset > bytes.size || size > bytes.size - offset) break;
    *out_rows = weir_view(bytes.data + offset, size);
    return NULL;
  }
  return WEIR_STATUS(DATA_LOSS, "a zip archive without a directory: it is cut off or damaged");
}

// Takes the name of the next member; false at the end.
static bool next_member(weir_view_t* rows, weir_view_t* out_name, int64_t* out_size) {
  if (rows->size < ROW_SIZE || weir_decode32(rows->data) != ROW_MAGIC) return false;
  size_t name = short_at(rows->data + 28);
  size_t whole = ROW_SIZE + name + short_at(rows->data + 30) + short_at(rows->data + 32);
  if (whole > rows->size) return false;
  *out_name = weir_view(rows->data + ROW_SIZE, name);
  *out_size = weir_decode32(rows->data + 24);
  *rows = weir_view(rows->data + whole, rows->size - whole);
  return true;
}

typedef struct zip_kind_t {
  const char* kind;
  const char* what;
  const char* advice;
} zip_kind_t;

static zip_kind_t kind_of(weir_view_t rows) {
  weir_view_t name;
  int64_t size = 0;
  bool is_keras = false, is_npz = rows.size > 0, is_torch = false;
  while (next_member(&rows, &name, &size)) {
    is_keras |= weir_view_is(name, "model.weights.h5");
    is_torch |= weir_view_ends_with(name, "data.pkl");
    is_npz &= weir_view_ends_with(name, ".npy");
  }
  if (is_npz) return (zip_kind_t){"npz", "NumPy archive of arrays", NULL};
  if (is_keras)
    return (zip_kind_t){"keras", "model in Keras's own format (.keras)",
                        "Keras alone can build it. In Python, export a SavedModel, which Weir "
                        "loads:\n  keras.saving.load_model('model.keras').export('exported')\n"};
  if (is_torch)
    return (zip_kind_t){"torch", "checkpoint of PyTorch",
                        "Write its tensors as safetensors (safetensors.torch.save_file), which "
                        "Weir reads.\n"};
  return (zip_kind_t){"zip", "zip archive", "Unpack it; weir show tells what its files are.\n"};
}

weir_status_t* weir_inspect_zip(weir_report_t* report, weir_view_t bytes) {
  weir_view_t rows = {0}, name;
  int64_t size = 0;
  WEIR_TRY(find_directory(bytes, &rows));
  zip_kind_t kind = kind_of(rows);
  weir_report_begin(report, kind.kind, kind.what);
  weir_report_open(report, "members", '[');
  while (next_member(&rows, &name, &size)) {
    weir_report_open(report, NULL, '{');
    weir_report_string(report, "name", name);
    weir_report_number(report, "bytes", size);
    weir_report_close(report, '}');
    weir_report_line(report, "  %-40.*s %12lld bytes\n", WEIR_VIEW_ARG(name), (long long)size);
  }
  weir_report_close(report, ']');
  if (kind.advice) weir_report_string(report, "advice", weir_view_of(kind.advice));
  if (kind.advice) weir_report_line(report, "%s", kind.advice);
  weir_report_close(report, '}');
  return NULL;
}

// ---- safetensors: a length, a JSON header, the bytes ----

static weir_status_t* report_safetensor(weir_report_t* report, const weir_json_t* tensor) {
  const weir_json_t* dtype = weir_json_find(tensor, "dtype");
  const weir_json_t* shape = weir_json_find(tensor, "shape");
  const weir_json_t* offsets = weir_json_find(tensor, "data_offsets");
  int64_t begin = 0, end = 0;
  if (!dtype || dtype->kind != WEIR_JSON_STRING || !shape || shape->kind != WEIR_JSON_ARRAY ||
      !offsets || offsets->count != 2 || !weir_json_int(offsets->first, &begin) ||
      !weir_json_int(offsets->first->next, &end) || begin < 0 || end < begin)
    return WEIR_STATUS(DATA_LOSS, "tensor '%.*s' lacks dtype, shape or data_offsets",
                       WEIR_VIEW_ARG(tensor->key));
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", tensor->key);
  weir_report_string(report, "dtype", dtype->text);
  weir_report_open(report, "shape", '[');
  weir_report_line(report, "  %-48.*s %-5.*s [", WEIR_VIEW_ARG(tensor->key),
                   WEIR_VIEW_ARG(dtype->text));
  for (const weir_json_t* dim = shape->first; dim; dim = dim->next) {
    int64_t value = 0;
    if (!weir_json_int(dim, &value) || value < 0)
      return WEIR_STATUS(DATA_LOSS, "tensor '%.*s' has a bad shape", WEIR_VIEW_ARG(tensor->key));
    weir_report_number(report, NULL, value);
    weir_report_line(report, "%s%lld", dim == shape->first ? "" : ",", (long long)value);
  }
  weir_report_close(report, ']');
  weir_report_number(report, "bytes", end - begin);
  weir_report_close(report, '}');
  weir_report_line(report, "] %lld bytes\n", (long long)(end - begin));
  return NULL;
}

static weir_status_t* report_header(weir_report_t* report, weir_view_t header) {
  weir_arena_t arena = {0};
  const weir_json_t* root = NULL;
  weir_status_t* status = weir_json_parse(header, &arena, &root);
  if (!status && root->kind != WEIR_JSON_OBJECT)
    status = WEIR_STATUS(DATA_LOSS, "the header of a safetensors file is no object");
  if (status) goto done;
  weir_report_begin(report, "safetensors", "safetensors");
  weir_report_open(report, "tensors", '[');
  for (const weir_json_t* tensor = root->first; tensor && !status; tensor = tensor->next) {
    if (!weir_view_is(tensor->key, "__metadata__")) status = report_safetensor(report, tensor);
  }
  weir_report_close(report, ']');
  weir_report_close(report, '}');
done:
  weir_arena_free(&arena);
  return status;
}

weir_status_t* weir_inspect_safetensors(weir_report_t* report) {
  enum { MAX_HEADER = 100000000 };
  weir_file_t* file = NULL;
  char length[8];
  char* header = NULL;
  WEIR_TRY(weir_file_open(report->path, &file));
  weir_status_t* status = weir_file_read_exactly(file, 0, length, sizeof(length));
  uint64_t size = status ? 0 : weir_decode64(length);
  if (!status && (size > MAX_HEADER || size > file->size - sizeof(length)))
    status = WEIR_STATUS(DATA_LOSS, "the header of a safetensors file claims %llu of %llu bytes",
                         (unsigned long long)size, (unsigned long long)file->size);
  if (!status && !(header = weir_malloc((size_t)WEIR_MAX(size, 1)))) status = weir_out_of_memory();
  if (!status) status = weir_file_read_exactly(file, sizeof(length), header, (size_t)size);
  if (!status) status = report_header(report, weir_view(header, (size_t)size));
  weir_free(header);
  weir_file_close(file);
  return status;
}
