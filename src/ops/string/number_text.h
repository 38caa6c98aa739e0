// number_text.h — Numbers as TensorFlow reads them from text: DecodeCSV, StringToNumber.
#ifndef WEIR_OPS_STRING_NUMBER_TEXT_H_
#define WEIR_OPS_STRING_NUMBER_TEXT_H_

#include "base/base.h"
#include "weir/dtype.h"

// Reads all of |text|, which a terminator follows, but for white space around it, into one element
// of |dtype|: float, double, or an integer of 32 or 64 bits. False when it is no number, or an
// integer that does not fit.
bool weir_number_parse(weir_view_t text, weir_dtype_t dtype, void* out_value);

#endif  // WEIR_OPS_STRING_NUMBER_TEXT_H_
