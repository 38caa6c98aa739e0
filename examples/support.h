// support.h — What the examples need that is not Weir: options, data files, random numbers, a
// progress bar.
#ifndef WEIR_EXAMPLES_SUPPORT_H_
#define WEIR_EXAMPLES_SUPPORT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

// Ends the program with a message if |status| is an error.
static inline void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// The number in "--steps=N", the only option, or |fallback|. Ends the program for any other.
static inline int steps_option(int argc, char** argv, int fallback) {
  char* end = NULL;
  long steps = argc == 2 && !strncmp(argv[1], "--steps=", 8) ? strtol(argv[1] + 8, &end, 10) : 0;
  if (argc == 1) return fallback;
  if (steps > 0 && steps < 1 << 30 && !*end) return (int)steps;
  fprintf(stderr, "usage: %s [--steps=N]\n", argv[0]);
  exit(2);
}

// The devices of a session that computes on |name|, "cuda:0", beside the CPU; written to |buffer|.
static inline const char* devices_option(const char* name, char buffer[64]) {
  const char* colon = strchr(name, ':');
  int size = colon ? (int)(colon - name) : (int)strlen(name);
  snprintf(buffer, 64, "cpu,%.*s:%ld", size, name, colon ? strtol(colon + 1, NULL, 10) + 1 : 1);
  return buffer;
}

// A tensor of a copy of |data|: tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(2, 3), numbers).
static inline weir_tensor_t* tensor_of(weir_dtype_t dtype, int rank, const int64_t* dims,
                                       const void* data) {
  weir_tensor_t* tensor = NULL;
  check(weir_tensor_create_from(dtype, rank, dims, data, &tensor));
  return tensor;
}

// The first element of |take_tensor|, a float.
static inline float float_of(weir_tensor_t* take_tensor) {
  float value = *(float*)weir_tensor_data(take_tensor);
  weir_tensor_release(take_tensor);
  return value;
}

// Runs one step: feeds |take_feeds|, runs |node| unless it is NULL, and returns |fetch|.
static inline weir_tensor_t* run_step(weir_session_t* session, weir_feed_t* take_feeds, int count,
                                      weir_node_t* node, weir_edge_t fetch) {
  weir_step_spec_t spec = {take_feeds, count, &fetch, 1, &node, node != NULL};
  weir_tensor_t* result = NULL;
  check(weir_session_run(session, &spec, &result));
  for (int i = 0; i < count; ++i) weir_tensor_release(take_feeds[i].tensor);
  return result;
}

// The bytes of a file, terminated; the caller's to free.
static inline char* read_text(const char* path, size_t* out_size) {
  FILE* file = fopen(path, "rb");
  char* text = NULL;
  long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
  if (size >= 0) text = (char*)calloc((size_t)size + 1, 1);
  bool is_good =
      text && !fseek(file, 0, SEEK_SET) && fread(text, 1, (size_t)size, file) == (size_t)size;
  if (file) fclose(file);
  if (!is_good)
    check(WEIR_STATUS(NOT_FOUND, "cannot read %s: run from the repository's root", path));
  *out_size = (size_t)size;
  return text;
}

// ---- random numbers: the same in every run of the program ----

static inline uint64_t random_bits(void) {
  static uint64_t state = 88172645463325252u;  // xorshift64
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static inline int random_below(int limit) { return (int)(random_bits() % (uint64_t)limit); }

static inline float random_float(void) {
  return (float)(random_bits() >> 40) * 0x1p-24f;
}  // [0, 1)

// ---- handwritten digits ----

// Reads a gzipped IDX file of bytes: 0, 0, 8, rank; the dimensions, big-endian; the elements.
static inline weir_tensor_t* load_idx(const char* directory, const char* name) {
  char command[4096];
  unsigned char head[4] = {0}, dim[4];
  int64_t dims[3] = {0};
  weir_tensor_t* tensor = NULL;
  snprintf(command, sizeof(command), "gzip -dc '%s/%s.gz'", directory, name);
  FILE* file = popen(command, "r");
  bool is_good = file && fread(head, 4, 1, file) == 1 && head[2] == 8 && head[3] <= 3;
  for (int i = 0; is_good && i < head[3]; ++i) {
    is_good = fread(dim, 4, 1, file) == 1;
    dims[i] = (int64_t)dim[0] << 24 | dim[1] << 16 | dim[2] << 8 | dim[3];
  }
  if (is_good) check(weir_tensor_create(WEIR_DTYPE_UINT8, head[3], dims, &tensor));
  size_t size = tensor ? weir_tensor_byte_size(tensor) : 0;
  is_good = is_good && fread(weir_tensor_data(tensor), 1, size, file) == size;
  if (file) pclose(file);
  if (!is_good) check(WEIR_STATUS(DATA_LOSS, "cannot read %s/%s.gz", directory, name));
  return tensor;
}

// Labelled images, and the order in which a training run visits them.
typedef struct data_t {
  weir_tensor_t *images, *labels;  // uint8: [n, 28, 28] and [n]
  weir_tensor_t* order;            // int32 [n]: row numbers
  int count;
} data_t;

static inline data_t load(const char* directory, const char* images, const char* labels) {
  data_t d = {.images = load_idx(directory, images), .labels = load_idx(directory, labels)};
  const int64_t count = weir_tensor_dim(d.images, 0);
  check(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &d.order));
  for (int i = 0; i < count; ++i) ((int32_t*)weir_tensor_data(d.order))[i] = i;
  d.count = (int)count;
  return d;
}

static inline void unload(data_t d) {
  weir_tensor_release(d.images);
  weir_tensor_release(d.labels);
  weir_tensor_release(d.order);
}

// Permutes |order|.
static inline void shuffle(int32_t* order, int64_t count) {
  for (int64_t i = count - 1; i > 0; --i) {
    int64_t k = (int64_t)(random_bits() % (uint64_t)(i + 1));
    int32_t other = order[k];
    order[k] = order[i];
    order[i] = other;
  }
}

// ---- progress ----

static inline double now(void) {  // seconds
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// After |step| of |steps| steps in |seconds|: a bar on a terminal, a line every 100 steps
// elsewhere.
static inline void show_progress(int step, int steps, int batch, float loss, double seconds) {
  const bool is_terminal = isatty(STDOUT_FILENO);
  if (!is_terminal && step % 100 && step < steps) return;
  int done = 30 * step / steps, left = (int)(seconds / step * (steps - step));
  if (is_terminal) printf("\r[%.*s%*s] ", done, "##############################", 30 - done, "");
  printf("step %d/%d  loss %.4f  %.0f images/s  %d:%02d left%s", step, steps, loss,
         step * batch / seconds, left / 60, left % 60, is_terminal && step < steps ? "  " : "\n");
  fflush(stdout);
}

#endif  // WEIR_EXAMPLES_SUPPORT_H_
