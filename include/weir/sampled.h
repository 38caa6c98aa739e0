// sampled.h — Losses over very many classes: those that look at a sample of them, as
// tf.nn.sampled_softmax_loss and tf.nn.nce_loss, for training only; and the whole softmax over
// classes in parts (weir/partition.h).
//
// Classes are sampled log-uniformly, so they must be numbered by falling frequency. The class
// weights may be spread over several variables; their gradients are sparse. Threading: as the
// scope's.
#ifndef WEIR_SAMPLED_H_
#define WEIR_SAMPLED_H_

#include "weir/attrs.h"
#include "weir/embedding.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// Candidates and how often each is expected in a sample, e.g. of UniformCandidateSampler.
typedef struct weir_candidates_t {
  weir_edge_t candidates;        // int64 [num_sampled]
  weir_edge_t true_expected;     // float [batch, num_true]
  weir_edge_t sampled_expected;  // float [num_sampled]
} weir_candidates_t;

typedef struct weir_sampled_options_t {
  int reserved;
  int num_true;                 // labels an example; default: 1
  weir_candidates_t sampled;    // default: drawn by LogUniformCandidateSampler, without repetition
  weir_opt_bool_t remove_hits;  // of labels in the sample; default: true for softmax, false for NCE
  weir_partition_t partition;   // of weights and biases
  int64_t seed;                 // of the sampler; 0: from the machine
  int64_t graph_seed;           // 0: TensorFlow's own when |seed| is given
  // Products and their gradients are computed where the parts of |weights| are, of which |biases|
  // has as many: inputs and logits cross between tasks instead of rows. Better where a batch has
  // fewer examples than a row has numbers.
  bool on_parts;
} weir_sampled_options_t;

// One loss an example. |weights|: [num_classes, size] in all parts, |biases|: [num_classes],
// |labels|: int64 [batch, num_true], |inputs|: [batch, size].
WEIR_API weir_edge_t weir_sampled_softmax_loss_with(weir_scope_t* scope, weir_tables_t weights,
                                                    weir_tables_t biases, weir_edge_t labels,
                                                    weir_edge_t inputs, int num_sampled,
                                                    int64_t num_classes,
                                                    const weir_sampled_options_t* options);
// Noise-contrastive estimation.
WEIR_API weir_edge_t weir_nce_loss_with(weir_scope_t* scope, weir_tables_t weights,
                                        weir_tables_t biases, weir_edge_t labels,
                                        weir_edge_t inputs, int num_sampled, int64_t num_classes,
                                        const weir_sampled_options_t* options);
#define weir_sampled_softmax_loss(scope, weights, biases, labels, inputs, num_sampled,             \
                                  num_classes, ...)                                                \
  weir_sampled_softmax_loss_with(scope, weights, biases, labels, inputs, num_sampled, num_classes, \
                                 &(const weir_sampled_options_t){0, __VA_ARGS__})
#define weir_nce_loss(scope, weights, biases, labels, inputs, num_sampled, num_classes, ...) \
  weir_nce_loss_with(scope, weights, biases, labels, inputs, num_sampled, num_classes,       \
                     &(const weir_sampled_options_t){0, __VA_ARGS__})

// The softmax over all classes, one loss an example, as
// tf.nn.sparse_softmax_cross_entropy_with_logits of all logits. These are computed where the parts
// are, as are the gradients of the weights; what crosses are |inputs|, [batch, size], their
// gradients, and three numbers an example and part. |labels|: int32 or int64 [batch].
WEIR_API weir_edge_t weir_partitioned_softmax_loss(weir_scope_t* scope, weir_tables_t weights,
                                                   weir_tables_t biases, weir_edge_t labels,
                                                   weir_edge_t inputs, weir_partition_t partition);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SAMPLED_H_
