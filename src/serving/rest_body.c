// rest_body.c — What a request's body holds, before any of it is read.
#include "serving/rest.h"

static weir_status_t* take_member(weir_rest_call_t* call, weir_scan_t* scan,
                                  const char* const* names, weir_view_t* values) {
  weir_view_t key, value;
  WEIR_TRY(weir_scan_key(scan, &key));
  if (weir_view_is(key, "signature_name")) return weir_scan_string(scan, &call->spec.signature);
  WEIR_TRY(weir_scan_skip(scan, &value));
  for (int i = 0; i < WEIR_REST_MEMBERS; ++i) {
    if (weir_view_is(key, names[i])) values[i] = value;
  }
  return NULL;
}

weir_status_t* weir_rest_find_members(weir_rest_call_t* call,
                                      const char* const names[WEIR_REST_MEMBERS],
                                      weir_scan_t* out_scan,
                                      weir_view_t out_values[WEIR_REST_MEMBERS]) {
  weir_view_t text = weir_http_call_request(call->http)->body;
  weir_scan_t scan = weir_scan(text.size ? text : weir_view("", 0), &call->job.arena);
  bool is_first = true, has_more = false;
  *out_scan = scan;
  for (int i = 0; i < WEIR_REST_MEMBERS; ++i) out_values[i] = (weir_view_t){0};
  WEIR_TRY(weir_scan_open(&scan, '{'));
  for (;;) {
    WEIR_TRY(weir_scan_more(&scan, '{', &is_first, &has_more));
    if (!has_more) return weir_scan_end(&scan);
    WEIR_TRY(take_member(call, &scan, names, out_values));
  }
}
