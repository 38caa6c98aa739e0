// server_absent.c — Servers of the public API in a build without the cluster: there are none.
#include "base/base.h"
#include "weir/server.h"

static weir_status_t* absent(void) {
  return WEIR_STATUS(UNIMPLEMENTED, "this build of Weir has no cluster (WEIR_CLUSTER=OFF)");
}

weir_status_t* weir_server_create(const weir_server_options_t* options,
                                  weir_server_t** out_server) {
  (void)options;
  (void)out_server;
  return absent();
}

weir_status_t* weir_server_shut_down(const char* target, const weir_server_options_t* options) {
  (void)target;
  (void)options;
  return absent();
}

weir_status_t* weir_server_state(const char* target, const weir_server_options_t* options,
                                 char** out_text) {
  (void)target;
  (void)options;
  (void)out_text;
  return absent();
}

// No server was ever created, so nobody can ask these.
int weir_server_port(const weir_server_t* server) {
  (void)server;
  return 0;
}

const char* weir_server_address(const weir_server_t* server) {
  (void)server;
  return "";
}

const char* weir_server_task_name(const weir_server_t* server) {
  (void)server;
  return "";
}

int weir_server_metrics_port(const weir_server_t* server) {
  (void)server;
  return 0;
}

weir_server_end_t weir_server_wait(weir_server_t* server, int timeout_ms) {
  (void)server;
  (void)timeout_ms;
  return WEIR_SERVER_STOPPED;
}

void weir_server_stop(weir_server_t* server) { (void)server; }

void weir_server_destroy(weir_server_t* server, int grace_ms) {
  (void)server;
  (void)grace_ms;
}
