// cudnn_log.c — WEIR_CUDNN_LOG: what is told of the search for a convolution's engine.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "kernel/conv/cudnn_internal.h"

const char* const weir_cudnn_way_names[WAYS] = {[0] = "plain",
                                                [WAY_TAIL] = "fused",
                                                [WAY_WIDE] = "wide",
                                                [WAY_WIDE | WAY_TAIL] = "wide fused",
                                                [WAY_FOLDED] = "folded",
                                                [WAY_FOLDED | WAY_TAIL] = "folded fused",
                                                [WAY_PRODUCT] = "product",
                                                [WAY_DIRECT] = "direct",
                                                [WAY_DIRECT | WAY_WIDE] = "direct wide",
                                                [WAY_DIRECT | WAY_FOLDED] = "direct folded"};

static void describe_choice(const choice_t* choice, char* text, size_t size) {
  size_t used =
      (size_t)snprintf(text, size, "%s, engine %lld", weir_cudnn_way_names[choice->way % WAYS],
                       (long long)choice->engine);
  for (int64_t i = 0; i < choice->knob_count && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, "%s%lld=%lld", i ? " " : ", knobs ",
                             (long long)choice->knobs[i].kind, (long long)choice->knobs[i].value);
}

static void describe_conv(const weir_cudnn_conv_t* c, char* text, size_t size) {
  static const char* const kinds[] = {"forward", "by input", "by filter"};
  static const char* const tails[] = {"", " + bias", " + bias + relu"};
  const weir_conv_t* v = &c->conv;
  snprintf(text, size,
           "%s%s of %s %s, %lld images %lldx%lldx%lld of %lld channels in %lld groups, filter "
           "%lldx%lldx%lld to %lld, stride %lldx%lldx%lld, dilation %lldx%lldx%lld, padding "
           "%lldx%lldx%lld",
           kinds[c->kind], tails[c->tail], weir_dtype_name(c->dtype), c->is_nchw ? "NCHW" : "NHWC",
           (long long)v->batch, (long long)v->in[0], (long long)v->in[1], (long long)v->in[2],
           (long long)v->in_c, (long long)v->groups, (long long)v->filter[0],
           (long long)v->filter[1], (long long)v->filter[2], (long long)v->out_c,
           (long long)v->stride[0], (long long)v->stride[1], (long long)v->stride[2],
           (long long)v->dilation[0], (long long)v->dilation[1], (long long)v->dilation[2],
           (long long)v->pad[0], (long long)v->pad[1], (long long)v->pad[2]);
}

void weir_cudnn_tell(const cudnn_task_t* task, const char* what, const char* text) {
  char conv[384];
  if (!task->dnn->is_told) return;
  describe_conv(task->conv, conv, sizeof(conv));
  weir_log_write(WEIR_LOG_INFO, __FILE__, __LINE__, "%s: %s: %s", conv, what, text);
}

void weir_cudnn_tell_choice(const cudnn_task_t* task, const char* what, const choice_t* choice,
                            const char* more) {
  char text[640] = "an engine without a name";
  if (choice) describe_choice(choice, text, sizeof(text) - 128);
  size_t used = strlen(text);
  snprintf(text + used, sizeof(text) - used, "%s", more);
  weir_cudnn_tell(task, what, text);
}
