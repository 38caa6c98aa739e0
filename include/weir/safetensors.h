// safetensors.h — Tensors by name in one file, in the format that model hubs use: read without a
// copy where the file's alignment allows, and written.
//
//   weir_safetensors_t* file = NULL;
//   check(weir_safetensors_open("model.safetensors", &file));
//   check(weir_safetensors_read(file, "embed.weight", &tensor));
//
// An open file is mapped into memory and must not be shortened by others while it, or a tensor that
// was read from it, lives. Threading: reading is thread-safe.
#ifndef WEIR_SAFETENSORS_H_
#define WEIR_SAFETENSORS_H_

#include "weir/session.h"
#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_safetensors_t weir_safetensors_t;

// A tensor of a file. Borrowed, as long as the file.
typedef struct weir_safetensors_entry_t {
  const char* name;
  const char* type;    // as the file spells it, "BF16"
  weir_dtype_t dtype;  // WEIR_DTYPE_INVALID: a type that Weir lacks, which cannot be read
  int rank;
  const int64_t* dims;
  size_t size;  // bytes
} weir_safetensors_entry_t;

// Opens a file and checks its header: INVALID_ARGUMENT or DATA_LOSS, naming the tensor, for one
// whose tensors overlap, leave holes or do not fit their shapes.
WEIR_API WEIR_MUST_USE weir_status_t* weir_safetensors_open(const char* path,
                                                            weir_safetensors_t** out_file);
WEIR_API void weir_safetensors_close(weir_safetensors_t* file);  // NULL is fine

// Tensors in the order of their bytes; NULL when |index| is out of range, or there is no |name|.
WEIR_API int weir_safetensors_count(const weir_safetensors_t* file);
WEIR_API const weir_safetensors_entry_t* weir_safetensors_at(const weir_safetensors_t* file,
                                                             int index);
WEIR_API const weir_safetensors_entry_t* weir_safetensors_find(const weir_safetensors_t* file,
                                                               const char* name);

// What writers note of a file, in the order of the header.
typedef struct weir_safetensors_note_t {
  const char* key;
  const char* value;
} weir_safetensors_note_t;
WEIR_API int weir_safetensors_note_count(const weir_safetensors_t* file);
WEIR_API weir_safetensors_note_t weir_safetensors_note_at(const weir_safetensors_t* file,
                                                          int index);  // NULLs: out of range

// Creates the tensor |name|: a view of the mapped file where its bytes are aligned, else a copy.
// NOT_FOUND naming it; UNIMPLEMENTED for types that Weir lacks.
WEIR_API WEIR_MUST_USE weir_status_t* weir_safetensors_read(const weir_safetensors_t* file,
                                                            const char* name,
                                                            weir_tensor_t** out_tensor);

// Writes |count| tensors, with |note_count| notes. The file appears at once, or not at all.
// UNIMPLEMENTED for strings and other types that the format lacks.
WEIR_API WEIR_MUST_USE weir_status_t* weir_safetensors_save(
    const char* path, const char* const* names, weir_tensor_t* const* tensors, int count,
    const weir_safetensors_note_t* notes, int note_count);

// Gives every variable of the session's graph the tensor of its name. NOT_FOUND names a variable
// that the file lacks; none is changed then.
WEIR_API WEIR_MUST_USE weir_status_t* weir_safetensors_restore(weir_session_t* session,
                                                               const char* path);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SAFETENSORS_H_
