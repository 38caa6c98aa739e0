// patches.c — Windows as rows of memory: each line of a window is copied where it lies within the
// input, and zero elsewhere.
#include "kernel/move/patches.h"

#include <string.h>

typedef struct job_t {
  const weir_patches_t* p;
  size_t pixel;  // bytes of all channels
  const char* in;
  char* out;
} job_t;

// One line of a window, from input column |left| on; |line| is NULL outside of the input.
static char* copy_line(const job_t* job, const char* line, int64_t left, char* out) {
  const weir_patches_t* p = job->p;
  const int64_t count = p->window[2], rate = p->rate[2], width = p->in[2];
  const size_t pixel = job->pixel;
  // Taps [first, end) are within the line.
  int64_t first = left >= 0 ? 0 : (-left - 1) / rate + 1;
  int64_t end = left >= width ? 0 : (width - left - 1) / rate + 1;
  if (first > count) first = count;
  if (end > count) end = count;
  if (!line || end <= first) first = end = count;
  memset(out, 0, (size_t)first * pixel);
  if (rate == 1 && first < end) {
    memcpy(out + (size_t)first * pixel, line + (size_t)(left + first) * pixel,
           (size_t)(end - first) * pixel);
  }
  for (int64_t i = first; rate != 1 && i < end; ++i) {
    memcpy(out + (size_t)i * pixel, line + (size_t)(left + i * rate) * pixel, pixel);
  }
  memset(out + (size_t)end * pixel, 0, (size_t)(count - end) * pixel);
  return out + (size_t)count * pixel;
}

static char* copy_patch(const job_t* job, int64_t image, const int64_t corner[3], char* out) {
  const weir_patches_t* p = job->p;
  const size_t line_size = (size_t)p->in[2] * job->pixel;
  for (int64_t kd = 0; kd < p->window[0]; ++kd) {
    int64_t d = corner[0] + kd * p->rate[0];
    for (int64_t kh = 0; kh < p->window[1]; ++kh) {
      int64_t h = corner[1] + kh * p->rate[1];
      bool is_inside = d >= 0 && d < p->in[0] && h >= 0 && h < p->in[1];
      const char* line =
          is_inside ? job->in + (size_t)((image * p->in[0] + d) * p->in[1] + h) * line_size : NULL;
      out = copy_line(job, line, corner[2], out);
    }
  }
  return out;
}

// |row| counts rows of the output over all planes of all images.
static void copy_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_patches_t* p = job->p;
  const size_t patch = (size_t)(p->window[0] * p->window[1] * p->window[2]) * job->pixel;
  char* out = job->out + (size_t)(begin * p->out[2]) * patch;
  for (int64_t row = begin; row < end; ++row) {
    int64_t h = row % p->out[1], plane = row / p->out[1];
    int64_t corner[3] = {plane % p->out[0] * p->stride[0] - p->pad[0], h * p->stride[1] - p->pad[1],
                         0};
    for (int64_t w = 0; w < p->out[2]; ++w) {
      corner[2] = w * p->stride[2] - p->pad[2];
      out = copy_patch(job, plane / p->out[0], corner, out);
    }
  }
}

void weir_extract_patches(weir_pool_t* pool, size_t size, const weir_patches_t* p, const void* in,
                          void* out) {
  job_t job = {.p = p, .pixel = size * (size_t)p->channels, .in = in, .out = out};
  double lines = (double)(p->out[2] * p->window[0] * p->window[1]);
  double cost = lines * (5 + 0.1 * (double)p->window[2] * (double)job.pixel);
  weir_pool_for(pool, p->batch * p->out[0] * p->out[1], cost, copy_rows, &job);
}
