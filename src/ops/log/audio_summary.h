// audio_summary.h — Sounds as a Summary: AudioSummary, AudioSummaryV2, WriteAudioSummary.
#ifndef WEIR_OPS_LOG_AUDIO_SUMMARY_H_
#define WEIR_OPS_LOG_AUDIO_SUMMARY_H_

#include "base/string.h"
#include "tensor/tensor.h"

// Appends up to |most| clips of |tensor|, floats of shape [clips, frames] or with channels after
// that, as WAV files at |rate| frames a second. INVALID_ARGUMENT when they cannot be such files.
WEIR_MUST_USE weir_status_t* weir_audio_put_summary(weir_strbuf_t* out, weir_view_t tag,
                                                    const weir_tensor_t* tensor, float rate,
                                                    int64_t most);

#endif  // WEIR_OPS_LOG_AUDIO_SUMMARY_H_
