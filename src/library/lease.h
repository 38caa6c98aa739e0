// lease.h — What training loops ask of a lease, wherever it is kept. Not public.
#ifndef WEIR_LIBRARY_LEASE_H_
#define WEIR_LIBRARY_LEASE_H_

#include "weir/lease.h"
#include "weir/session.h"

// How often a loop asks in the time that a lease holds.
enum { WEIR_LEASE_ASKS = 4 };

// Whether there is one: options may have none.
bool weir_lib_is_lease(const weir_lease_t* lease);
// Asks by a step of |session|, or etcd. An error of that one means that the lease is not held.
WEIR_MUST_USE weir_status_t* weir_lib_lease_ask(const weir_lease_t* lease, weir_session_t* session,
                                                const weir_run_options_t* options,
                                                bool* out_is_held);
WEIR_MUST_USE weir_status_t* weir_lib_lease_release(const weir_lease_t* lease,
                                                    weir_session_t* session,
                                                    const weir_run_options_t* options);

#endif  // WEIR_LIBRARY_LEASE_H_
