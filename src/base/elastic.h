// elastic.h — Pools whose tasks do not wait for long ones.
//
// A pool has as many threads as the machine is meant to compute with, and a task or a loop holds
// one until it is through. Where all of them are held for long, by large kernels or by something
// that blocks, an elastic pool starts another thread for what waits, and the system shares the CPUs
// out among them. Such a thread takes tasks only, never parts of a loop, and ends when it has had
// nothing to do for a while. As long as tasks are taken from the queue there is none of them: a
// server with many short steps computes with the threads it was given.
#ifndef WEIR_BASE_ELASTIC_H_
#define WEIR_BASE_ELASTIC_H_

#include "base/thread.h"

// Lets |pool| start up to |limit| threads more. Before its first use.
void weir_pool_make_elastic(weir_pool_t* pool, int limit);

#endif  // WEIR_BASE_ELASTIC_H_
