// predict.h — How long a step would take, by the cost model, and what it would wait for.
#ifndef WEIR_RUNTIME_PREDICT_H_
#define WEIR_RUNTIME_PREDICT_H_

#include "runtime/program.h"

typedef struct weir_predict_params_t {
  weir_source_t source;  // its graph is consumed in every case
  const char* cluster;   // file with the rates of its tasks; NULL: the devices of the program
  const char* trace;     // with times of nodes; NULL: those the program places by
  bool json;
  bool with_nodes;  // each of them, with its device
} weir_predict_params_t;

// Places the step and plays it through: appends what each device does, the time, the bytes that
// cross between memories, and the critical path.
WEIR_MUST_USE weir_status_t* weir_program_predict(weir_program_t* program,
                                                  const weir_predict_params_t* take_params,
                                                  weir_strbuf_t* out);

#endif  // WEIR_RUNTIME_PREDICT_H_
