// background_kernel.c — Kernels on threads that may wait.
#include "ops/data/background_kernel.h"

#include "ops/data/background.h"

typedef struct job_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  weir_status_t* (*compute)(weir_kernel_ctx_t* ctx);
} job_t;

static void run_job(void* arg) {
  job_t job = *(job_t*)arg;
  weir_free(arg);
  weir_done_call(job.done, job.compute(job.ctx));
}

void weir_background_kernel(weir_kernel_ctx_t* ctx, weir_done_t done,
                            weir_status_t* (*compute)(weir_kernel_ctx_t* ctx)) {
  job_t* job = weir_malloc(sizeof(*job));
  if (!job) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *job = (job_t){.ctx = ctx, .done = done, .compute = compute};
  weir_status_t* status = weir_background_run(run_job, job);
  if (!status) return;
  weir_free(job);
  weir_done_call(done, status);
}
