// support.h — What the examples need that is not Weir: data files, a shuffle, a progress bar.
#ifndef WEIR_EXAMPLES_SUPPORT_H_
#define WEIR_EXAMPLES_SUPPORT_H_

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

// Ends the program with a message if |status| is an error.
static inline void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

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

// Permutes |order|; the same way in every run of the program.
static inline void shuffle(int32_t* order, int64_t count) {
  static uint64_t state = 88172645463325252u;  // xorshift64
  for (int64_t i = count - 1; i > 0; --i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    int64_t k = (int64_t)(state % (uint64_t)(i + 1));
    int32_t other = order[k];
    order[k] = order[i];
    order[i] = other;
  }
}

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
