// audio_summary.c — AudioSummary, AudioSummaryV2: a Summary of sounds as WAV files.
#include "ops/log/audio_summary.h"

#include <math.h>

#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "wire/wire.h"

typedef struct clip_t {
  const float* samples;
  int64_t frames, channels;
  uint32_t rate;
} clip_t;

enum { kHeader = 44, kSampleSize = 2 };

static void put_little(weir_strbuf_t* out, uint32_t value, int size) {
  for (int i = 0; i < size; ++i) weir_strbuf_putc(out, (char)(value >> (8 * i) & 255u));
}

static void put_wav(weir_strbuf_t* out, const clip_t* clip) {
  const uint32_t frame_size = (uint32_t)(clip->channels * kSampleSize);
  const uint32_t size = (uint32_t)clip->frames * frame_size;
  weir_strbuf_puts(out, "RIFF");
  put_little(out, size + kHeader - 8, 4);
  weir_strbuf_puts(out, "WAVEfmt ");
  put_little(out, 16, 4);  // bytes of this part
  put_little(out, 1, 2);   // plain samples
  put_little(out, (uint32_t)clip->channels, 2);
  put_little(out, clip->rate, 4);
  put_little(out, clip->rate * frame_size, 4);
  put_little(out, frame_size, 2);
  put_little(out, 8 * kSampleSize, 2);
  weir_strbuf_puts(out, "data");
  put_little(out, size, 4);
  for (int64_t i = 0; i < clip->frames * clip->channels; ++i) {
    const float scaled = roundf(clip->samples[i] * 32768.0f);
    const float sample = scaled < -32768.0f ? -32768.0f : scaled > 32767.0f ? 32767.0f : scaled;
    put_little(out, (uint16_t)(sample == sample ? (int16_t)sample : 0), kSampleSize);
  }
}

static weir_status_t* check_clip(const clip_t* clip) {
  if (clip->channels == 0) return WEIR_STATUS(INVALID_ARGUMENT, "audio is null");
  if (clip->channels > UINT16_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_channels must be in (0, 2^16), got: %lld",
                       (long long)clip->channels);
  }
  if (clip->frames > (UINT32_MAX - kHeader) / (kSampleSize * clip->channels)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Provided channels and frames cannot be encoded as a WAV.");
  }
  return NULL;
}

static void put_value(weir_strbuf_t* out, weir_view_t tag, int64_t index, float rate,
                      const clip_t* clip) {
  const size_t value = weir_wire_begin(out, 1);
  const size_t name = weir_wire_begin(out, 1);
  weir_strbuf_append(out, tag.data, tag.size);
  weir_strbuf_puts(out, "/audio");
  if (index >= 0) weir_strbuf_printf(out, "/%lld", (long long)index);
  weir_wire_end(out, name);
  const size_t audio = weir_wire_begin(out, 6);
  weir_wire_put_float(out, 1, rate);
  if (clip->channels) weir_wire_put_int(out, 2, clip->channels);
  if (clip->frames) weir_wire_put_int(out, 3, clip->frames);
  const size_t bytes = weir_wire_begin(out, 4);
  put_wav(out, clip);
  weir_wire_end(out, bytes);
  weir_wire_put_string(out, 5, "audio/wav");
  weir_wire_end(out, audio);
  weir_wire_end(out, value);
}

static weir_status_t* check_sounds(const weir_tensor_t* tensor, float rate) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank < 2 || tensor->rank > 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor must be 3-D or 2-D, got: %s",
                       weir_tensor_shape_text(tensor, text));
  }
  if (!(rate > 0.0f)) return WEIR_STATUS(INVALID_ARGUMENT, "sample_rate must be > 0");
  return NULL;
}

weir_status_t* weir_audio_put_summary(weir_strbuf_t* out, weir_view_t tag,
                                      const weir_tensor_t* tensor, float rate, int64_t most) {
  WEIR_TRY(check_sounds(tensor, rate));
  const int64_t count = WEIR_MIN(most, tensor->dims[0]);
  const double rounded = rint((double)rate);
  clip_t clip = {.frames = tensor->dims[1], .channels = tensor->rank == 2 ? 1 : tensor->dims[2]};
  if (count > 0 && rounded > (double)UINT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "sample_rate must be in (0, 2^32), got: %g", (double)rate);
  }
  clip.rate = rounded < 1 ? 1 : (uint32_t)WEIR_MIN(rounded, (double)UINT32_MAX);
  for (int64_t i = 0; i < count; ++i) {
    clip.samples = (const float*)tensor->data + i * clip.frames * clip.channels;
    WEIR_TRY(check_clip(&clip));
    put_value(out, tag, most > 1 ? i : -1, rate, &clip);
  }
  return weir_strbuf_finish(out);
}

// The rate is an input, or an attribute of the old op.
static weir_status_t* read_rate(const weir_kernel_ctx_t* ctx, float* out_rate) {
  if (ctx->input_count < 3) {
    *out_rate = weir_attrs_float(weir_kernel_attrs(ctx), "sample_rate");
    return NULL;
  }
  const weir_tensor_t* rate = weir_kernel_input(ctx, 2);
  if (rate->count != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "sample_rate must be rank-0 or contain a single value, got shape %s",
                       weir_tensor_shape_text(rate, text));
  }
  *out_rate = *WEIR_TENSOR_DATA(rate, float);
  return NULL;
}

static weir_status_t* audio_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* tag = weir_kernel_input(ctx, 0);
  weir_strbuf_t summary = {0};
  weir_tensor_t* out = NULL;
  float rate = 0;
  if (tag->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "Tag must be a scalar");
  WEIR_TRY(read_rate(ctx, &rate));
  weir_status_t* status = weir_audio_put_summary(
      &summary, weir_string_view(WEIR_TENSOR_DATA(tag, weir_string_t)), weir_kernel_input(ctx, 1),
      rate, weir_attrs_int(weir_kernel_attrs(ctx), "max_outputs"));
  if (!status) status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (!status) status = weir_tensor_set_string(out, 0, summary.data, summary.size);
  weir_strbuf_free(&summary);
  return status;
}

const weir_op_module_t weir_ops_log_audio_summary = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "AudioSummaryV2",
                                    .summary = "A Summary of sounds",
                                    .attrs = "max_outputs: int >= 1 = 3",
                                    .inputs = "tag: string; tensor: float; sample_rate: float",
                                    .outputs = "summary: string",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = audio_cpu)},
                                   {.name = "AudioSummary",
                                    .summary = "A Summary of sounds of a fixed rate",
                                    .attrs = "sample_rate: float; max_outputs: int >= 1 = 3",
                                    .inputs = "tag: string; tensor: float",
                                    .outputs = "summary: string",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = audio_cpu)},
                                   {0}}};
