// details.h — What a status carries beside code and message: bytes that mean nothing here, for
// whoever the status reaches. Copies and prefixed statuses keep them.
#ifndef WEIR_BASE_DETAILS_H_
#define WEIR_BASE_DETAILS_H_

#include "base/string.h"
#include "weir/status.h"

// Returns |take_status| with |details|, which are copied, in place of those it had; none: empty.
// Consumes |take_status|; NULL stays NULL. Without memory it is returned as it was.
WEIR_MUST_USE weir_status_t* weir_status_with_details(weir_status_t* take_status,
                                                      weir_view_t details);
// Borrowed; empty: there are none.
weir_view_t weir_status_details(const weir_status_t* status);

#endif  // WEIR_BASE_DETAILS_H_
