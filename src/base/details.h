// details.h — What a status carries beside code and message, so that nobody has to read its text:
// the node it is about, whether it came from another task, and bytes that mean nothing here, for
// whoever the status reaches.
//
// Copies keep all of it. A prefix (weir_status_prefix) says what the message is about from then on:
// the node and the origin are forgotten.
#ifndef WEIR_BASE_DETAILS_H_
#define WEIR_BASE_DETAILS_H_

#include "base/string.h"
#include "weir/status.h"

// All of these consume |take_status|; NULL stays NULL. Without memory it is returned as it was.

// Returns |take_status| with |details|, which are copied, in place of those it had; none: empty.
WEIR_MUST_USE weir_status_t* weir_status_with_details(weir_status_t* take_status,
                                                      weir_view_t details);
// Borrowed; empty: there are none.
weir_view_t weir_status_details(const weir_status_t* status);

// Returns |take_status| with |text| behind its message, about what it was about before.
WEIR_MUST_USE weir_status_t* weir_status_append(weir_status_t* take_status, weir_view_t text);

// ---- the node ----
// Says where it went wrong: "Node 'NAME' (OP): message". |op| may be NULL: it is not said.
WEIR_MUST_USE weir_status_t* weir_status_at_node(weir_status_t* take_status, const char* name,
                                                 const char* op);
#define WEIR_NODE_STATUS(code, name, ...) \
  weir_status_at_node(WEIR_STATUS(code, __VA_ARGS__), name, NULL)
// Notes that the message is about node |name|, which it names in words of its own.
WEIR_MUST_USE weir_status_t* weir_status_about_node(weir_status_t* take_status, weir_view_t name);
bool weir_status_has_node(const weir_status_t* status);
// An error as TensorFlow's client reads it: it finds the node by "{{node NAME}}" in the text, which
// is put at the end unless there is one.
WEIR_MUST_USE weir_status_t* weir_status_mark_node(weir_status_t* take_status);

// ---- the origin ----
// An error that came from |task|: its text begins with "From TASK:", unless it says already where
// it came from before.
WEIR_MUST_USE weir_status_t* weir_status_from(weir_status_t* take_status, const char* task);
bool weir_status_has_origin(const weir_status_t* status);
// An error that another process stated: the one place where text is read.
WEIR_MUST_USE weir_status_t* weir_status_received(weir_code_t code, weir_view_t text);

#endif  // WEIR_BASE_DETAILS_H_
