// functions.h — Function calls of a program: bodies instantiated once per attribute set, as plans.
// Thread-safe.
#ifndef WEIR_RUNTIME_FUNCTIONS_H_
#define WEIR_RUNTIME_FUNCTIONS_H_

#include "op/kernel.h"

typedef struct weir_program_t weir_program_t;
typedef struct weir_function_plans_t weir_function_plans_t;

WEIR_MUST_USE weir_status_t* weir_function_plans_create(weir_program_t* program,
                                                        weir_function_plans_t** out_functions);
void weir_function_plans_destroy(weir_function_plans_t* functions);
// Names are looked up anew from now on: one of them stands for another function, or none. Handles
// stay what they are.
void weir_function_plans_forget(weir_function_plans_t* functions);
weir_functions_t* weir_function_plans_base(weir_function_plans_t* functions);

#endif  // WEIR_RUNTIME_FUNCTIONS_H_
