// wav.c — DecodeWav, EncodeWav: sound of 16 bits a sample and the bytes of WAV files.
#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { HEADER_SIZE = 44, FORMAT_SIZE = 16, LONG_FORMAT_SIZE = 18, SAMPLE_SIZE = 2 };

static uint64_t load(const char* bytes, int size) {  // the low byte comes first
  uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | (uint8_t)bytes[i];
  return value;
}

static char* store(char* bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes[i] = (char)(value >> (8 * i));
  return bytes + size;
}

// ---- decoding ----

typedef struct wav_t {
  weir_view_t file;
  size_t at;
  int64_t channels;
  int64_t rate;
  size_t frame_size;
  int64_t frames;
  const char* data;  // NULL: there is none yet
} wav_t;

static weir_status_t* take(wav_t* wav, size_t size, const char** out_bytes) {
  if (wav->at > wav->file.size || size > wav->file.size - wav->at) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Data too short when trying to read string");
  }
  *out_bytes = wav->file.data + wav->at;
  wav->at += size;
  return NULL;
}

static weir_status_t* expect(wav_t* wav, const char* text) {
  const char* found = NULL;
  WEIR_TRY(take(wav, strlen(text), &found));
  if (memcmp(found, text, strlen(text)) == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Header mismatch: Expected %s but found %.*s", text,
                     (int)strlen(text), found);
}

// Chunks that some programs put before the format.
static bool is_padding(const char* id) {
  static const char names[][5] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    if (memcmp(id, names[i], 4) == 0) return true;
  }
  return false;
}

static weir_status_t* find_format(wav_t* wav) {
  const char *id = NULL, *size = NULL, *skipped = NULL;
  for (;;) {
    WEIR_TRY(take(wav, 4, &id));
    if (memcmp(id, "fmt ", 4) == 0) return NULL;
    if (!is_padding(id)) return WEIR_STATUS(INVALID_ARGUMENT, "Unexpected field %.4s", id);
    WEIR_TRY(take(wav, 4, &size));
    WEIR_TRY(take(wav, (size_t)load(size, 4), &skipped));
  }
}

static weir_status_t* check_format(wav_t* wav, const char* format) {
  const unsigned kind = (unsigned)load(format, 2), bits = (unsigned)load(format + 14, 2);
  const uint64_t rate_in_bytes = load(format + 8, 4), frame_size = load(format + 12, 2);
  wav->channels = (int64_t)load(format + 2, 2);
  wav->rate = (int64_t)load(format + 4, 4);
  if (kind != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Bad audio format for WAV: Expected 1 (PCM), but got%u",
                       kind);
  }
  if (wav->channels < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Bad number of channels for WAV: Expected at least 1, but got %lld",
                       (long long)wav->channels);
  }
  if (bits != 8 * SAMPLE_SIZE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Can only read 16-bit WAV files, but received %u", bits);
  }
  wav->frame_size = SAMPLE_SIZE * (size_t)wav->channels;
  if (frame_size != wav->frame_size) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Bad bytes per sample in WAV header: Expected %zu but got %llu",
                       wav->frame_size, (unsigned long long)frame_size);
  }
  if (rate_in_bytes != frame_size * (uint64_t)wav->rate) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Bad bytes per second in WAV header: Expected %llu but got %llu "
                       "(sample_rate=%lld, bytes_per_sample=%llu)",
                       (unsigned long long)(frame_size * (uint64_t)wav->rate),
                       (unsigned long long)rate_in_bytes, (long long)wav->rate,
                       (unsigned long long)frame_size);
  }
  return NULL;
}

static weir_status_t* read_header(wav_t* wav) {
  const char *size = NULL, *format = NULL;
  WEIR_TRY(expect(wav, "RIFF"));
  WEIR_TRY(take(wav, 4, &size));
  WEIR_TRY(expect(wav, "WAVE"));
  WEIR_TRY(find_format(wav));
  WEIR_TRY(take(wav, 4, &size));
  const unsigned format_size = (unsigned)load(size, 4);
  if (format_size != FORMAT_SIZE && format_size != LONG_FORMAT_SIZE) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Bad format chunk size for WAV: Expected 16 or 18, but got%u", format_size);
  }
  WEIR_TRY(take(wav, FORMAT_SIZE, &format));
  wav->at += format_size - FORMAT_SIZE;
  return check_format(wav, format);
}

static weir_status_t* read_chunk(wav_t* wav) {
  const char *id = NULL, *size_bytes = NULL, *data = NULL;
  WEIR_TRY(take(wav, 4, &id));
  WEIR_TRY(take(wav, 4, &size_bytes));
  const size_t size = (size_t)load(size_bytes, 4);
  if (size > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "WAV data chunk '%.4s' is too large: %zu bytes, but the limit is %d", id,
                       size, INT32_MAX);
  }
  if (memcmp(id, "data", 4) != 0) {
    wav->at += size;  // maybe beyond the end
    return NULL;
  }
  if (wav->data) return WEIR_STATUS(INVALID_ARGUMENT, "More than one data chunk found in WAV");
  WEIR_TRY(take(wav, size, &data));
  wav->at -= size % wav->frame_size;  // the next chunk follows the last whole frame
  wav->data = data;
  wav->frames = (int64_t)(size / wav->frame_size);
  return NULL;
}

static weir_status_t* read_wav(wav_t* wav) {
  WEIR_TRY(read_header(wav));
  while (wav->at < wav->file.size) WEIR_TRY(read_chunk(wav));
  return wav->data ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "No data chunk found in WAV");
}

// Channels that the file lacks are as its last, samples that it lacks are silent.
static void write_samples(const wav_t* wav, const int64_t dims[2], float* out) {
  for (int64_t i = 0; i < dims[0]; ++i) {
    const char* frame = wav->data + (size_t)i * wav->frame_size;
    for (int64_t c = 0; c < dims[1]; ++c) {
      const int64_t from = WEIR_MIN(c, wav->channels - 1);
      out[i * dims[1] + c] =
          i < wav->frames ? (float)(int16_t)load(frame + SAMPLE_SIZE * from, 2) * 0x1p-15f : 0;
    }
  }
}

typedef struct decode_t {
  int64_t channels;  // -1: as in the file
  int64_t samples;
} decode_t;

static weir_status_t* decode_init(const weir_kernel_init_t* init, void* state) {
  decode_t* self = state;
  self->channels = weir_attrs_int(init->node->attrs, "desired_channels");
  self->samples = weir_attrs_int(init->node->attrs, "desired_samples");
  const char* name = self->channels < -1 || self->channels > INT32_MAX ? "channels" : "samples";
  const int64_t value = *name == 'c' ? self->channels : self->samples;
  if (value < -1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "desired_%s must be >= -1, got %lld", name,
                       (long long)value);
  }
  if (value > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr desired_%s has value %lld out of range for an int32",
                       name, (long long)value);
  }
  return NULL;
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  const decode_t* self = ctx->state;
  const weir_tensor_t* contents = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (contents->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "contents must be scalar, got shape %s",
                       weir_tensor_shape_text(contents, text));
  }
  wav_t wav = {.file = weir_string_view(contents->data)};
  if (wav.file.size > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "WAV contents are too large for int: %zu", wav.file.size);
  }
  WEIR_TRY(read_wav(&wav));
  const int64_t dims[] = {self->samples < 0 ? wav.frames : self->samples,
                          self->channels < 0 ? wav.channels : self->channels};
  weir_tensor_t* audio = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &audio));
  write_samples(&wav, dims, audio->data);
  return weir_kernel_output_int(ctx, 1, (int32_t)wav.rate);
}

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int64_t channels = weir_attrs_int(attrs, "desired_channels");
  const int64_t samples = weir_attrs_int(attrs, "desired_samples");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  if (channels < -1 || samples < -1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be non-negative, got %lld",
                       channels < -1 ? "channels" : "samples",
                       (long long)(channels < -1 ? channels : samples));
  }
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){samples, channels}));
  return weir_shape_set_scalar(ctx, 1);
}

// ---- encoding ----

static int16_t to_sample(float value) {
  const float scaled = roundf(value * 32768.0f);
  if (isnan(scaled)) return 0;
  return (int16_t)(scaled < -32768 ? -32768 : scaled > 32767 ? 32767 : scaled);
}

// A tag has no terminator in the file.
static char* store_tag(char* out, const char* tag) {
  while (*tag) *out++ = *tag++;
  return out;
}

static void write_wav(char* out, const weir_tensor_t* audio, uint32_t rate) {
  const uint64_t channels = (uint64_t)audio->dims[1], frame = SAMPLE_SIZE * channels;
  const uint64_t size = SAMPLE_SIZE * (uint64_t)audio->count;
  out = store_tag(out, "RIFF");
  out = store(out, HEADER_SIZE - 8 + size, 4);
  out = store_tag(out, "WAVEfmt ");
  out = store(out, FORMAT_SIZE, 4);
  out = store(out, 1, 2);
  out = store(out, channels, 2);
  out = store(out, rate, 4);
  out = store(out, rate * frame, 4);  // modulo 2^32, as TensorFlow writes it
  out = store(out, frame, 2);
  out = store(out, 8 * SAMPLE_SIZE, 2);
  out = store_tag(out, "data");
  out = store(out, size, 4);
  for (int64_t i = 0; i < audio->count; ++i) {
    out = store(out, (uint16_t)to_sample(WEIR_TENSOR_DATA(audio, float)[i]), 2);
  }
}

static weir_status_t* check_sound(const weir_tensor_t* audio, const weir_tensor_t* rate) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (audio->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "audio must be 2-dimensional%s",
                       weir_tensor_shape_text(audio, text));
  }
  if (rate->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input sample_rate should be a scalar tensor, got %s instead.",
                       weir_tensor_shape_text(rate, text));
  }
  const int64_t hertz = weir_tensor_int_at(rate, 0), channels = audio->dims[1];
  if (hertz <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "sample_rate must be in (0, 2^32), got: %llu",
                       (unsigned long long)hertz);
  }
  if (channels <= 0 || channels >= 1 << 16) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_channels must be in (0, 2^16), got: %lld",
                       (long long)channels);
  }
  if (audio->count > (UINT32_MAX - HEADER_SIZE) / SAMPLE_SIZE) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Provided channels and frames cannot be encoded as a WAV.");
  }
  return NULL;
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *audio = weir_kernel_input(ctx, 0), *rate = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_sound(audio, rate));
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  char* bytes = weir_string_resize(out->data, HEADER_SIZE + SAMPLE_SIZE * (size_t)audio->count);
  if (!bytes) return weir_out_of_memory();
  write_wav(bytes, audio, (uint32_t)weir_tensor_int_at(rate, 0));
  return NULL;
}

static weir_status_t* encode_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

const weir_op_module_t weir_ops_audio_wav = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeWav",
         .attrs = "desired_channels: int = -1; desired_samples: int = -1",
         .inputs = "contents: string",
         .outputs = "audio: float; sample_rate: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The samples of a WAV file, from -1 to 1",
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .init = decode_init,
                                    .state_size = sizeof(decode_t))},
        {.name = "EncodeWav",
         .inputs = "audio: float; sample_rate: int32",
         .outputs = "contents: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "A WAV file of samples from -1 to 1",
         .infer_shape = encode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu)},
        {0}}};
