// json_tensor.h — Tensors out of JSON and into it: nested arrays of numbers, booleans, strings and
// {"b64": "…"}.
#ifndef WEIR_SERVING_JSON_TENSOR_H_
#define WEIR_SERVING_JSON_TENSOR_H_

#include "serving/scan.h"
#include "tensor/tensor.h"

// A tensor of known type being filled, value by value. Zero-initialise with the type and name.
// Thread-confined.
typedef struct weir_tensor_maker_t {
  weir_dtype_t dtype;
  const char* name;  // for messages; borrowed
  int rank;          // of the values so far
  bool has_rank;
  int64_t dims[WEIR_JSON_MAX_DEPTH + 1];  // -1: no array of that depth has ended yet
  int64_t count;                          // elements so far
  weir_strbuf_t data;                     // of them; strings: views, into the text or the arena
} weir_tensor_maker_t;

void weir_tensor_maker_init(weir_tensor_maker_t* maker, weir_dtype_t dtype, const char* name);
void weir_tensor_maker_free(weir_tensor_maker_t* maker);
// Reads the value that comes, which lies |depth| arrays deep. INVALID_ARGUMENT for a value of
// another type and for arrays that do not make a rectangle.
WEIR_MUST_USE weir_status_t* weir_tensor_maker_read(weir_tensor_maker_t* maker, weir_scan_t* scan,
                                                    int depth);
// Ends an array of |count| values at |depth|.
WEIR_MUST_USE weir_status_t* weir_tensor_maker_close(weir_tensor_maker_t* maker, int depth,
                                                     int64_t count);
// The tensor, in the memory that was filled; the maker is empty then. |rank| and |dims| instead of
// those read; -1: those.
WEIR_MUST_USE weir_status_t* weir_tensor_maker_finish(weir_tensor_maker_t* maker, int rank,
                                                      const int64_t* dims,
                                                      weir_tensor_t** out_tensor);

// Whether an object {"b64": …}, and nothing else, comes. Takes nothing.
bool weir_scan_is_b64(weir_scan_t* scan);
// A string, or {"b64": …} decoded into the arena.
WEIR_MUST_USE weir_status_t* weir_scan_bytes(weir_scan_t* scan, weir_view_t* out_bytes);

// Appends elements as nested arrays. |is_binary|: strings as {"b64": …}, as those are anyway that
// are no UTF-8. UNIMPLEMENTED for types that JSON has nothing for.
WEIR_MUST_USE weir_status_t* weir_json_put_tensor(const weir_tensor_t* tensor, bool is_binary,
                                                  weir_strbuf_t* out);
// Row |row| along the first dimension.
WEIR_MUST_USE weir_status_t* weir_json_put_row(const weir_tensor_t* tensor, int64_t row,
                                               bool is_binary, weir_strbuf_t* out);
// All elements in one array.
WEIR_MUST_USE weir_status_t* weir_json_put_flat(const weir_tensor_t* tensor, weir_strbuf_t* out);

#endif  // WEIR_SERVING_JSON_TENSOR_H_
