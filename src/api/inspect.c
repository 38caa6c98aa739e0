// inspect.c — What a file is, told by its first bytes, and who describes it.
#include "api/inspect.h"

#include "base/crc32c.h"
#include "file/checkpoint_state.h"
#include "file/coding.h"
#include "file/fs.h"
#include "file/table.h"
#include "weir/argument.h"
#include "weir/inspect.h"
#include "wire/utf8.h"

enum { HEAD = 4096 };

// ---- files that Weir does not read ----

typedef struct foreign_t {
  size_t offset;
  const char* magic;
  size_t size;
  const char* kind;
  const char* what;
  const char* advice;
} foreign_t;

static const foreign_t foreign[] = {
    {0, "\x89HDF\r\n\x1a\n", 8, "hdf5", "HDF5 file: Keras's old format of models and weights (.h5)",
     "Keras alone can build it. In Python, export a SavedModel, which Weir loads:\n"
     "  keras.saving.load_model('model.h5').export('exported')\n"},
    {4, "TFL3", 4, "tflite", "model of TensorFlow Lite",
     "Weir loads what it was converted from: the SavedModel.\n"},
    {0, "\x1f\x8b", 2, "gzip", "gzip file",
     "Unpack it (gunzip), or read it as records with compression_type \"GZIP\".\n"},
    {0, "\x89PNG\r\n\x1a\n", 8, "png", "PNG image", "DecodePng and DecodeImage read it.\n"},
    {0, "\xff\xd8\xff", 3, "jpeg", "JPEG image", "DecodeJpeg and DecodeImage read it.\n"},
    {0, "GIF8", 4, "gif", "GIF image", "DecodeGif and DecodeImage read it.\n"},
    {0, "SQLite format 3", 15, "sqlite", "SQLite database", "SqlDataset reads it.\n"},
    {0,
     "\x7f"
     "ELF",
     4, "elf", "program or shared object", "If it has ops of yours: --plugin=FILE.\n"},
};

static void report_foreign(weir_report_t* report, const char* kind, const char* what,
                           const char* advice) {
  weir_report_begin(report, kind, what);
  weir_report_string(report, "advice", weir_view_of(advice));
  weir_report_line(report, "%s", advice);
  weir_report_close(report, '}');
}

static const foreign_t* find_foreign(weir_view_t head) {
  for (size_t i = 0; i < WEIR_COUNT_OF(foreign); ++i) {
    const foreign_t* row = &foreign[i];
    if (head.size >= row->offset + row->size &&
        memcmp(head.data + row->offset, row->magic, row->size) == 0)
      return row;
  }
  return NULL;
}

// ---- protobuf messages ----

typedef enum proto_t { NO_PROTO, GRAPH, META_GRAPH, SAVED_MODEL, ONNX } proto_t;

static bool is_word(weir_view_t text) {
  if (text.size == 0 || text.size > 256) return false;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_letter && c != '_' && c != '>' && c != '.') return false;
  }
  return true;
}

// Whether the message has a name and an op, as a NodeDef does.
static bool is_node(weir_view_t message) {
  bool has_name = false, has_op = false;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == 1) has_name = r.type == WEIR_WIRE_BYTES && weir_utf8_is_valid(r.bytes);
    if (r.field == 2) has_op = r.type == WEIR_WIRE_BYTES && is_word(r.bytes);
  }
  return has_name && has_op;
}

// By the first field of each number, also of a message that ends too early.
static proto_t proto_of(weir_view_t bytes) {
  bool seen[16] = {false};
  proto_t kind = NO_PROTO;
  bool is_versioned = false;
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.field >= WEIR_COUNT_OF(seen) || seen[r.field]) continue;
    seen[r.field] = true;
    if (r.field == 1 && r.type == WEIR_WIRE_VARINT) is_versioned = true;
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) kind = is_node(r.bytes) ? GRAPH : META_GRAPH;
    if (is_versioned && r.field == 2 && r.type == WEIR_WIRE_BYTES && kind == NO_PROTO)
      kind = is_word(r.bytes) ? ONNX : SAVED_MODEL;
    if (is_versioned && (r.field == 7 || r.field == 8) && r.type == WEIR_WIRE_BYTES) kind = ONNX;
    if (kind == NO_PROTO && (r.field == 2 || r.field == 4) && !is_versioned &&
        r.type == WEIR_WIRE_BYTES)
      kind = GRAPH;
  }
  // What is no message at all ends at once; and a MetaGraphDef has a graph.
  if (kind == META_GRAPH && !seen[2]) kind = NO_PROTO;
  return kind;
}

static weir_status_t* inspect_proto(weir_report_t* report, weir_view_t bytes) {
  weir_strbuf_t directory = {0};
  weir_view_t parent = weir_path_parent(report->path);
  weir_status_t* status = NULL;
  switch (proto_of(bytes)) {
    case GRAPH: return weir_inspect_graph(report, bytes, false);
    case META_GRAPH: return weir_inspect_meta_graph(report, bytes);
    case ONNX:
      report_foreign(report, "onnx", "ONNX model",
                     "weir import reads ONNX where this build has it.\n");
      return NULL;
    case SAVED_MODEL:
      weir_strbuf_printf(&directory, "%.*s",
                         WEIR_VIEW_ARG(parent.size ? parent : weir_view_of(".")));
      status = weir_strbuf_finish(&directory);
      if (!status) status = weir_inspect_saved_model(report, bytes, directory.data);
      weir_strbuf_free(&directory);
      return status;
    case NO_PROTO: break;
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "no kind of file that Weir knows, or its beginning is damaged (%zu bytes)",
                     bytes.size);
}

// ---- texts ----

// Whether a line begins with |word| and then, behind spaces, has one of |next|.
static bool has_line(weir_view_t text, const char* word, const char* next) {
  size_t size = strlen(word);
  for (size_t i = 0; i + size < text.size; ++i) {
    if ((i > 0 && text.data[i - 1] != '\n') || memcmp(text.data + i, word, size) != 0) continue;
    size_t at = i + size;
    while (at < text.size && text.data[at] == ' ') ++at;
    if (at < text.size && strchr(next, text.data[at])) return true;
  }
  return false;
}

// The file "checkpoint" stands for the latest checkpoint beside it.
static weir_status_t* inspect_state(weir_report_t* report) {
  weir_view_t parent = weir_path_parent(report->path);
  weir_strbuf_t directory = {0};
  weir_strbuf_printf(&directory, "%.*s", WEIR_VIEW_ARG(parent.size ? parent : weir_view_of(".")));
  weir_status_t* status = weir_strbuf_finish(&directory);
  if (!status) status = weir_inspect_checkpoint(report, directory.data);
  weir_strbuf_free(&directory);
  return status;
}

static weir_status_t* inspect_text(weir_report_t* report, weir_view_t text) {
  weir_view_t head = weir_view(text.data, WEIR_MIN(text.size, (size_t)HEAD));
  if (has_line(head, "meta_graphs", "{:") || has_line(head, "meta_info_def", "{:")) {
    report_foreign(report, "text_model", "SavedModel or MetaGraphDef in text form",
                   "Weir loads the binary form, .pb or .meta.\n");
    return NULL;
  }
  if (has_line(head, "node", "{:") || has_line(head, "library", "{:") ||
      has_line(head, "versions", "{:"))
    return weir_inspect_graph(report, text, true);
  if (has_line(head, "model_checkpoint_path", ":")) return inspect_state(report);
  weir_view_t trimmed = weir_view_trim(head);
  if (trimmed.size && (trimmed.data[0] == '{' || trimmed.data[0] == '[')) {
    report_foreign(report, "json", "JSON",
                   "Of a model it is the configuration; the weights are elsewhere.\n");
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "a text, but none that Weir knows");
}

// ---- by the first bytes ----

static bool is_record(weir_view_t head) {
  if (head.size < 12) return false;
  return weir_crc32c_unmask(weir_decode32(head.data + 8)) == weir_crc32c(head.data, 8);
}

static bool is_safetensors(weir_view_t head, uint64_t file_size) {
  if (head.size < 9 || head.data[8] != '{') return false;
  return weir_decode64(head.data) < file_size + ((uint64_t)1 << 27);
}

static bool is_table(weir_view_t bytes) {
  return bytes.size >= WEIR_TABLE_FOOTER_SIZE &&
         weir_decode64(bytes.data + bytes.size - 8) == WEIR_TABLE_MAGIC;
}

static bool is_text(weir_view_t head) {
  for (size_t i = 0; i < head.size; ++i) {
    unsigned char c = (unsigned char)head.data[i];
    if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r')) return false;
  }
  return head.size > 0;
}

static bool is_zip(weir_view_t head) {
  return weir_view_starts_with(head, "PK\x03\x04") || weir_view_starts_with(head, "PK\x05\x06");
}

static weir_status_t* inspect_whole(weir_report_t* report, weir_view_t bytes) {
  weir_view_t head = weir_view(bytes.data, WEIR_MIN(bytes.size, (size_t)HEAD));
  if (weir_view_starts_with(head, "\x93NUMPY")) return weir_inspect_npy(report, bytes);
  const foreign_t* other = find_foreign(head);
  if (other) {
    report_foreign(report, other->kind, other->what, other->advice);
    return NULL;
  }
  if (bytes.size == 0) return WEIR_STATUS(INVALID_ARGUMENT, "the file is empty");
  return is_text(head) ? inspect_text(report, bytes) : inspect_proto(report, bytes);
}

// Reads all of what is told by more than its head.
static weir_status_t* read_whole(weir_report_t* report) {
  weir_strbuf_t bytes = {0};
  weir_status_t* status = weir_fs_read_all(report->path, &bytes);
  if (!status && is_table(weir_strbuf_view(&bytes)))
    status = weir_inspect_checkpoint(report, report->path);
  else if (!status)
    status =
        weir_status_prefix(inspect_whole(report, weir_strbuf_view(&bytes)), "%s: ", report->path);
  weir_strbuf_free(&bytes);
  return status;
}

// The prefix of "prefix.data-00000-of-00001" beside its index: the caller's; NULL: it is none.
static char* prefix_of_data(const char* path) {
  const char* data = strstr(path, ".data-");
  for (const char* next = data; next; next = strstr(next + 1, ".data-")) data = next;
  if (!data) return NULL;
  weir_strbuf_t index = {0};
  weir_strbuf_printf(&index, "%.*s.index", (int)(data - path), path);
  bool is_there = !index.failed && weir_fs_exists(index.data);
  weir_strbuf_free(&index);
  return is_there ? weir_strndup(path, (size_t)(data - path)) : NULL;
}

// Archives, records and tensors may be larger than memory: they are told by their head and read in
// pieces. |bytes|: the file, where it is in memory.
static weir_status_t* inspect_content(weir_report_t* report, const weir_view_t* bytes) {
  weir_file_t* file = NULL;
  weir_mapping_t* mapping = NULL;
  char head[HEAD];
  size_t size = 0;
  WEIR_TRY(bytes ? weir_file_from_view(*bytes, report->path, &file)
                 : weir_file_open(report->path, &file));
  weir_status_t* status = weir_file_read(file, 0, head, sizeof(head), &size);
  weir_view_t view = weir_view(head, size);
  bool has_tensors = !status && is_safetensors(view, file->size);
  if (!status && is_record(view)) return weir_inspect_records(report, file);
  if (!status && is_zip(view)) return weir_inspect_zip(report, file);
  weir_file_close(file);
  if (status) return status;
  if (has_tensors) {
    WEIR_TRY(bytes ? weir_mapping_from_view(*bytes, &mapping)
                   : weir_mapping_create(report->path, &mapping));
    return weir_inspect_safetensors(report, mapping);
  }
  return bytes ? inspect_whole(report, *bytes) : read_whole(report);
}

static weir_status_t* inspect_regular(weir_report_t* report) {
  char* prefix = prefix_of_data(report->path);
  weir_status_t* status =
      prefix ? weir_inspect_checkpoint(report, prefix) : inspect_content(report, NULL);
  weir_free(prefix);
  return status;
}

// ---- directories, and names that are no file ----

static weir_status_t* inspect_file_in(weir_report_t* report, const char* directory,
                                      const char* name, bool* out_found) {
  weir_strbuf_t path = {0};
  weir_strbuf_printf(&path, "%s/%s", directory, name);
  weir_status_t* status = weir_strbuf_finish(&path);
  *out_found = !status && weir_fs_exists(path.data);
  if (*out_found) {
    report->path = path.data;
    status = inspect_regular(report);
    report->path = directory;
  }
  weir_strbuf_free(&path);
  return status;
}

static weir_status_t* report_listing(weir_report_t* report, const char* directory) {
  weir_names_t names = {0};
  weir_status_t* status = weir_fs_list(directory, &names);
  if (status) return status;
  weir_names_sort(&names);
  weir_report_begin(report, "directory", "directory, neither a SavedModel nor of checkpoints");
  weir_report_open(report, "files", '[');
  for (size_t i = 0; i < names.count; ++i) {
    weir_report_string(report, NULL, weir_view_of(names.items[i]));
    weir_report_line(report, "  %s\n", names.items[i]);
  }
  weir_report_close(report, ']');
  weir_report_close(report, '}');
  weir_names_free(&names);
  return NULL;
}

static weir_status_t* inspect_directory(weir_report_t* report) {
  static const char* const models[] = {"saved_model.pb", "saved_model.pbtxt"};
  bool is_found = false;
  for (size_t i = 0; i < WEIR_COUNT_OF(models); ++i) {
    weir_status_t* status = inspect_file_in(report, report->path, models[i], &is_found);
    if (status || is_found) return status;
  }
  weir_strbuf_t state = {0};
  weir_strbuf_printf(&state, "%s/checkpoint", report->path);
  weir_status_t* status = weir_strbuf_finish(&state);
  bool has_state = !status && weir_fs_exists(state.data);
  weir_strbuf_free(&state);
  if (status) return status;
  return has_state ? weir_inspect_checkpoint(report, report->path)
                   : report_listing(report, report->path);
}

static weir_status_t* inspect_any(weir_report_t* report) {
  weir_file_info_t info = {0};
  weir_strbuf_t index = {0};
  weir_status_t* status = weir_fs_info(report->path, &info);
  if (!status) return info.is_directory ? inspect_directory(report) : inspect_regular(report);
  weir_strbuf_printf(&index, "%s.index", report->path);
  bool is_prefix = !index.failed && weir_fs_exists(index.data);
  weir_strbuf_free(&index);
  if (!is_prefix) return status;
  weir_status_destroy(status);
  return weir_inspect_checkpoint(report, report->path);
}

// Takes what is in |report|, unless |take_status| says that it is not whole.
static weir_status_t* finish(weir_report_t* report, weir_status_t* take_status, char** out_text) {
  weir_status_t* status = take_status;
  if (report->is_json) weir_strbuf_putc(&report->out, '\n');
  if (!status) status = weir_strbuf_finish(&report->out);
  if (status) weir_strbuf_free(&report->out);
  else *out_text = report->out.data;
  return status;
}

weir_status_t* weir_inspect_bytes(weir_view_t bytes, const char* path, bool json, char** out_text) {
  weir_report_t report = {.is_json = json, .path = path};
  return finish(&report, inspect_content(&report, &bytes), out_text);
}

weir_status_t* weir_inspect_file(const char* path, bool json, char** out_text) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_text);
  weir_report_t report = {.is_json = json, .path = path};
  return finish(&report, inspect_any(&report), out_text);
}
