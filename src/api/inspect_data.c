// inspect_data.c — What is in files of arrays: .npy, .npz and other zip archives, safetensors.
#include "api/inspect.h"
#include "file/npy.h"
#include "file/safetensors.h"
#include "file/zip.h"

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

// ---- zip archives ----

typedef struct zip_kind_t {
  const char* kind;
  const char* what;
  const char* advice;
} zip_kind_t;

static zip_kind_t kind_of(const weir_zip_t* zip) {
  size_t count = weir_zip_count(zip);
  bool is_npz = count > 0, is_torch = false;
  for (size_t i = 0; i < count; ++i) {
    weir_view_t name = weir_zip_at(zip, i)->name;
    is_torch |= weir_view_ends_with(name, "data.pkl");
    is_npz &= weir_view_ends_with(name, ".npy");
  }
  if (is_npz) return (zip_kind_t){"npz", "NumPy archive of arrays", NULL};
  if (weir_zip_find(zip, weir_view_of("model.weights.h5")))
    return (zip_kind_t){"keras", "model in Keras's own format (.keras)",
                        "Keras alone can build it. In Python, export a SavedModel, which Weir "
                        "loads:\n  keras.saving.load_model('model.keras').export('exported')\n"};
  if (is_torch)
    return (zip_kind_t){"torch", "checkpoint of PyTorch",
                        "Write its tensors as safetensors (safetensors.torch.save_file), which "
                        "Weir reads.\n"};
  return (zip_kind_t){"zip", "zip archive", "Unpack it; weir show tells what its files are.\n"};
}

static void report_member(weir_report_t* report, const weir_zip_member_t* member) {
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", member->name);
  weir_report_number(report, "bytes", (int64_t)member->size);
  weir_report_close(report, '}');
  weir_report_line(report, "  %-40.*s %12llu bytes\n", WEIR_VIEW_ARG(member->name),
                   (unsigned long long)member->size);
}

weir_status_t* weir_inspect_zip(weir_report_t* report, weir_file_t* take_file) {
  weir_zip_t* zip = NULL;
  WEIR_TRY(weir_zip_open(take_file, &zip));
  zip_kind_t kind = kind_of(zip);
  weir_report_begin(report, kind.kind, kind.what);
  weir_report_open(report, "members", '[');
  for (size_t i = 0; i < weir_zip_count(zip); ++i) report_member(report, weir_zip_at(zip, i));
  weir_report_close(report, ']');
  if (kind.advice) weir_report_string(report, "advice", weir_view_of(kind.advice));
  if (kind.advice) weir_report_line(report, "%s", kind.advice);
  weir_report_close(report, '}');
  weir_zip_close(zip);
  return NULL;
}

// ---- safetensors ----

static void report_safetensor(weir_report_t* report, const weir_safetensors_entry_t* tensor) {
  weir_strbuf_t shape = {0};
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", weir_view_of(tensor->name));
  weir_report_string(report, "dtype", weir_view_of(tensor->type));
  weir_report_open(report, "shape", '[');
  for (int i = 0; i < tensor->rank; ++i) weir_report_number(report, NULL, tensor->dims[i]);
  weir_report_close(report, ']');
  weir_report_number(report, "bytes", (int64_t)tensor->size);
  weir_report_close(report, '}');
  weir_report_line(report, "  %-48s %-5s %s %zu bytes\n", tensor->name, tensor->type,
                   weir_report_shape(tensor->rank, tensor->dims, &shape), tensor->size);
  weir_strbuf_free(&shape);
}

weir_status_t* weir_inspect_safetensors(weir_report_t* report, weir_mapping_t* take_mapping) {
  weir_safetensors_t* file = NULL;
  WEIR_TRY(weir_safetensors_parse(take_mapping, report->path, &file));
  weir_report_begin(report, "safetensors", "safetensors");
  weir_report_open(report, "tensors", '[');
  for (int i = 0; i < weir_safetensors_count(file); ++i)
    report_safetensor(report, weir_safetensors_at(file, i));
  weir_report_close(report, ']');
  weir_report_close(report, '}');
  weir_safetensors_close(file);
  return NULL;
}
