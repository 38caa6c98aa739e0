// serve_absent.c — Serving models in a build without the cluster: there is none.
#include "base/base.h"
#include "weir/serve.h"

weir_status_t* weir_serve_create(const weir_serve_options_t* options, weir_serve_t** out_serve) {
  (void)options;
  (void)out_serve;
  return WEIR_STATUS(UNIMPLEMENTED, "this build of Weir has no cluster (WEIR_CLUSTER=OFF)");
}

// None was ever created, so nobody can ask these.
int weir_serve_port(const weir_serve_t* serve) {
  (void)serve;
  return 0;
}

int weir_serve_rest_port(const weir_serve_t* serve) {
  (void)serve;
  return 0;
}

bool weir_serve_wait(weir_serve_t* serve, int timeout_ms) {
  (void)serve;
  (void)timeout_ms;
  return true;
}

void weir_serve_stop(weir_serve_t* serve) { (void)serve; }

void weir_serve_destroy(weir_serve_t* serve, int grace_ms) {
  (void)serve;
  (void)grace_ms;
}
