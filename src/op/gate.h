// gate.h — The gate that a task's steps pass before they write to variables: closed for a moment,
// the variables of one or of many tasks hold whole steps, and can be taken for a checkpoint.
//
// A step passes the gate of a task once, just before the first of its kernels there that writes to
// a variable (exec/dynamic.c), and has left it when the step is over on all tasks, which its master
// tells each of them (CleanupGraph). Steps that compute, wait or read are not held up.
//
// A step that takes the variables of tasks 1 to n, all of them together, does so in four rounds.
// Its master puts the nodes in (pass/fence.h); rounds are edges of its graph:
//
//   1. hold    each task closes its gate, and says which steps have passed it and have not left.
//   2. await   each task learns what all have said: these steps may pass, for they have written
//              elsewhere. It waits until those that have passed here have left.
//   3. read    when all tasks have waited, the variables are read, which holds their memory.
//   4. open    each task opens its gate as soon as its own variables are read.
//
// Why that is whole steps only. A step that wrote anywhere before round 3 had passed a gate before
// that was closed, or was among those that may pass: so one task that it passed counts it, and
// waits for its end, which is after all of its writes everywhere. A step that did not, writes only
// at gates that are open again, behind the reads there. What stops in between:
//
// - The taking step fails, or its client, its master or a task dies: the step ends on all others
//   (weir_gate_leave), and with it whatever it holds.
// - A step that has passed dies halfway: its connection ends (weir_gate_disconnect). What it has
//   written stays written; there is no whole step of it to wait for.
// - Steps that have passed take long, or wait for those that are held: a gate opens by itself when
//   its time is up. Who held it is told at the next round, DEADLINE_EXCEEDED, and saves nothing.
// - Another step holds the gate: it is waited for, no longer than that.
//
// Peers and clients can close gates of a server by running such a graph; each time for no longer
// than the limit. They may as well remove the variables.
//
// Thread-safe. Callbacks run on any thread without a lock; maybe before the function returns.
#ifndef WEIR_OP_GATE_H_
#define WEIR_OP_GATE_H_

#include "base/cancel.h"
#include "base/thread.h"
#include "op/resource.h"
#include "weir/done.h"

typedef struct weir_gate_t weir_gate_t;
// A gate is held for |limit_ns| at most.
WEIR_MUST_USE weir_status_t* weir_gate_create(int64_t limit_ns, weir_gate_t** out_gate);
// Nobody may wait at it any more.
void weir_gate_destroy(weir_gate_t* gate);
// The gate before the variables of |resources|, for kernels; NULL: there is none. To be set before
// any step runs; it must last as long as they do.
weir_gate_t* weir_gate_of(const weir_resources_t* resources);
void weir_gate_set(weir_resources_t* resources, weir_gate_t* gate);

// ---- steps that write ----
// Whether |step| (not 0) has passed, now or before. False: the gate is held, or there is no memory
// to note it; weir_gate_pass tells which.
bool weir_gate_try_pass(weir_gate_t* gate, int64_t step);
// Calls |done| once |step| has passed. CANCELLED when |cancel| fires before that.
void weir_gate_pass(weir_gate_t* gate, int64_t step, weir_cancel_t* cancel, weir_done_t done);
// |step| is over everywhere, or for ever; what it holds is open.
void weir_gate_leave(weir_gate_t* gate, int64_t step);
// The part of |step| here is over; who will tell its end is at the other end of |connection|.
void weir_gate_tie(weir_gate_t* gate, int64_t step, uint64_t connection);
// All steps leave that are tied to |connection|.
void weir_gate_disconnect(weir_gate_t* gate, uint64_t connection);

// ---- the step that takes variables ----
// Calls |done| once |step| holds the gate.
void weir_gate_hold(weir_gate_t* gate, int64_t step, weir_cancel_t* cancel, weir_done_t done);
// The steps that have passed and not left, the caller's to free.
WEIR_MUST_USE weir_status_t* weir_gate_list(weir_gate_t* gate, int64_t** out_steps,
                                            size_t* out_count);
// Lets |steps| pass and calls |done| when all that have passed have left. DEADLINE_EXCEEDED when
// the time is up before that, or |step| no longer holds the gate.
void weir_gate_await(weir_gate_t* gate, int64_t step, const int64_t* steps, size_t count,
                     weir_cancel_t* cancel, weir_done_t done);
// DEADLINE_EXCEEDED: it has opened by itself, and others may have written since.
WEIR_MUST_USE weir_status_t* weir_gate_open(weir_gate_t* gate, int64_t step);

#endif  // WEIR_OP_GATE_H_
