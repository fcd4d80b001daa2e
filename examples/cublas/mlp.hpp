/*
 * A multilayer perceptron whose matrix products are cuBLAS's: what is trained here on one card, and in ../nccl on several.
 *
 * All that survives a step is a STATE pin, what the host hands over a FEED, the learning rate a CELL, the loss an OUTPUT.
 * Activations, gradients, new parameters and cuBLAS's workspace do not outlive a step: SCRATCH.
 */
#ifndef EXAMPLES_MLP_HPP
#define EXAMPLES_MLP_HPP

#include "host.hpp"

#include <cublas_v2.h>

#include <memory>

struct Shape {
    int in = 64, width = 256, layers = 8, classes = 10;
    int batch = 128; /* Of one rank. */
};

/* Whose memory cuBLAS works in. */
enum class Workspace {
    Pin,  /* A pin: as it should be. */
    Own,  /* The host's own, which no pin covers; see Blas::regrow(). */
    Unset /* cuBLAS's own. */
};

class Blas
{
  public:
    Blas(const host::Session &session, Workspace kind);
    ~Blas();
    Blas(const Blas &) = delete;
    Blas &operator=(const Blas &) = delete;

    /* c = a b, column by column; a transposed c is m x n, the sums are of k products. */
    void multiply(bool transpose_a, bool transpose_b, int m, int n, int k, uint64_t a, int rows_a, uint64_t b, int rows_b,
                  uint64_t c) const;
    /* Another workspace, as a host might get one when a larger product comes along. For Workspace::Own. */
    void regrow();

  private:
    void set_workspace(uint64_t address, uint64_t bytes) const;

    const host::Session &session_;
    cublasHandle_t handle_ = nullptr;
    std::unique_ptr<host::Pin> pin_;
    uint64_t own_[2] = {0, 0};
};

class Mlp
{
  public:
    /* The same parameters for the same seed. Batches are those of `rank` among `ranks`. */
    Mlp(const host::Session &session, const Shape &shape, uint64_t seed, Workspace workspace = Workspace::Pin, int rank = 0,
        int ranks = 1);

    /* Back to the start. */
    void reset();
    /* Hand over the batch and the learning rate of step k. */
    void feed(uint64_t k);
    /* Enqueue a step in two halves, so that gradients can be exchanged in between. `step` may be NULL: no stages are marked. */
    void forward_backward(stepgraph_step *step);
    void update(stepgraph_step *step);
    /* All gradients, side by side. */
    uint64_t gradients() const
    {
        return gradients_.at();
    }
    size_t parameter_count() const
    {
        return count_;
    }
    Blas &blas()
    {
        return blas_;
    }

    float loss() const;
    /* Every byte that survives a step, for comparisons. */
    std::vector<unsigned char> state() const;

  private:
    struct Parameter {
        host::Pin value, first, second;
        size_t offset; /* In the gradients and the new parameters. */
        int rows, columns;
    };
    struct Batch {
        std::vector<float> x;
        std::vector<int> labels;
    };

    size_t add_parameter(const std::string &name, int rows, int columns, size_t offset);
    void make_batches(uint64_t seed, int rank, int ranks);
    uint64_t z(int layer) const;
    uint64_t a(int layer) const;
    int rows(int layer) const;
    int columns(int layer) const;

    const host::Session &session_;
    Shape shape_;
    uint64_t seed_;
    host::Kernels kernels_;
    CUfunc_st *bias_, *bias_silu_, *silu_backward_, *bias_backward_, *softmax_loss_, *mean_, *count_step_, *adamw_;
    Blas blas_;

    std::vector<Parameter> parameters_; /* Weight and bias of each layer. */
    std::vector<stepgraph_pin *> committed_;
    std::vector<uint64_t> fresh_at_;
    size_t count_ = 0;
    host::Pin powers_, x_, labels_, rate_, loss_, activations_;
    host::Pin gradients_, fresh_;
    std::vector<Batch> batches_;
};

#endif
