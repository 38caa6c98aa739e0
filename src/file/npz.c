// npz.c — NumPy's .npz files, read and written.
#include "file/npz.h"

#include "base/alloc.h"
#include "base/map.h"
#include "file/npy.h"
#include "file/replacement.h"
#include "file/zip.h"
#include "weir/argument.h"

static const char kSuffix[] = ".npy";
static const uint64_t kLimit = (uint64_t)4 << 30;

struct weir_npz_t {
  weir_zip_t* zip;
  uint64_t limit;  // bytes that one member may take
  char** names;    // of arrays: without the suffix
  const weir_zip_member_t** members;
  size_t count;
  weir_map_t by_name;  // to members
};

// ---- reading ----

static weir_view_t array_name(weir_view_t member) {
  if (!weir_view_ends_with(member, kSuffix)) return member;
  return weir_view(member.data, member.size - strlen(kSuffix));
}

static weir_status_t* add_array(weir_npz_t* npz, const weir_zip_member_t* member) {
  weir_view_t name = array_name(member->name);
  if (weir_view_ends_with(name, "/")) return NULL;  // a folder
  if (weir_map_find(&npz->by_name, name))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: array '%.*s' is there twice", weir_zip_path(npz->zip),
                       WEIR_VIEW_ARG(name));
  npz->names[npz->count] = weir_strndup(name.data, name.size);
  if (!npz->names[npz->count]) return weir_out_of_memory();
  npz->members[npz->count++] = member;
  return weir_map_put(&npz->by_name, name, (void*)member);
}

weir_status_t* weir_npz_from_file(weir_file_t* take_file, const weir_npz_options_t* options,
                                  weir_npz_t** out_npz) {
  weir_npz_t* npz = weir_calloc(1, sizeof(*npz));
  if (!npz) {
    weir_file_close(take_file);
    return weir_out_of_memory();
  }
  npz->limit = options && options->limit ? options->limit : kLimit;
  weir_status_t* status = weir_zip_open(take_file, &npz->zip);
  if (status) goto done;
  size_t count = weir_zip_count(npz->zip);
  npz->names = weir_calloc(count, sizeof(*npz->names));
  npz->members = weir_calloc(count, sizeof(*npz->members));
  if (!npz->names || !npz->members) status = weir_out_of_memory();
  for (size_t i = 0; i < count && !status; ++i) status = add_array(npz, weir_zip_at(npz->zip, i));
done:
  if (status) weir_npz_close(npz);
  else *out_npz = npz;
  return status;
}

weir_status_t* weir_npz_open(const char* path, const weir_npz_options_t* options,
                             weir_npz_t** out_npz) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_npz);
  weir_file_t* file = NULL;
  WEIR_TRY(weir_file_open(path, &file));
  return weir_npz_from_file(file, options, out_npz);
}

void weir_npz_close(weir_npz_t* npz) {
  if (!npz) return;
  for (size_t i = 0; i < npz->count; ++i) weir_free(npz->names[i]);
  weir_free(npz->names);
  weir_free(npz->members);
  weir_map_free(&npz->by_name);
  weir_zip_close(npz->zip);
  weir_free(npz);
}

int weir_npz_count(const weir_npz_t* npz) { return npz ? (int)npz->count : 0; }
const char* weir_npz_name(const weir_npz_t* npz, int index) {
  return npz && index >= 0 && (size_t)index < npz->count ? npz->names[index] : NULL;
}

weir_status_t* weir_npz_read(const weir_npz_t* npz, const char* name, weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(npz);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_tensor);
  weir_strbuf_t bytes = {0};
  const weir_zip_member_t* member = weir_map_find(&npz->by_name, weir_view_of(name));
  if (!member) return WEIR_STATUS(NOT_FOUND, "%s: no array '%s'", weir_zip_path(npz->zip), name);
  weir_status_t* status = weir_zip_read(npz->zip, member, npz->limit, &bytes);
  if (!status) {
    status = weir_npy_parse(weir_strbuf_view(&bytes), out_tensor);
    status = weir_status_prefix(status, "%s: array '%s': ", weir_zip_path(npz->zip), name);
  }
  weir_strbuf_free(&bytes);
  return status;
}

// ---- writing ----

static weir_status_t* add_tensor(weir_zip_writer_t* zip, const char* name,
                                 const weir_tensor_t* tensor, bool is_compressed) {
  weir_strbuf_t member = {0}, bytes = {0};
  weir_strbuf_printf(&member, "%s%s", name, kSuffix);
  weir_status_t* status = weir_strbuf_finish(&member);
  if (!status) status = weir_npy_write(tensor, &bytes);
  if (status) status = weir_status_prefix(status, "array '%s': ", name);
  else
    status =
        weir_zip_add(zip, weir_strbuf_view(&member),
                     is_compressed ? WEIR_ZIP_DEFLATED : WEIR_ZIP_STORED, weir_strbuf_view(&bytes));
  weir_strbuf_free(&bytes);
  weir_strbuf_free(&member);
  return status;
}

static weir_status_t* check_names(const char* const* names, weir_tensor_t* const* tensors,
                                  int count) {
  weir_map_t seen = {0};
  weir_status_t* status = NULL;
  for (int i = 0; i < count && !status; ++i) {
    if (!names[i] || !tensors[i])
      status = WEIR_STATUS(INVALID_ARGUMENT, "array %d of %d has no name or no tensor", i, count);
    else if (weir_map_find(&seen, weir_view_of(names[i])))
      status = WEIR_STATUS(INVALID_ARGUMENT, "array '%s' is given twice", names[i]);
    else status = weir_map_put(&seen, weir_view_of(names[i]), tensors[i]);
  }
  weir_map_free(&seen);
  return status;
}

weir_status_t* weir_npz_save(const char* path, const char* const* names,
                             weir_tensor_t* const* tensors, int count, bool is_compressed) {
  WEIR_REQUIRE_ARG(path);
  if (count > 0) WEIR_REQUIRE_ARG(names);
  if (count > 0) WEIR_REQUIRE_ARG(tensors);
  WEIR_TRY(check_names(names, tensors, count));
  weir_replacement_t file = {0};
  weir_status_t* status = weir_replacement_begin(&file, path);
  weir_zip_writer_t zip = {.file = file.writer};
  for (int i = 0; i < count && !status; ++i)
    status = add_tensor(&zip, names[i], tensors[i], is_compressed);
  if (!status) status = weir_zip_finish(&zip);
  weir_zip_writer_free(&zip);
  return weir_replacement_end(&file, status);
}
