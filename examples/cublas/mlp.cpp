#include "mlp.hpp"

#include "cublas-kernels.h" /* cublas_kernels_ptx: kernels.ptx, embedded by the build. */

#include <cmath>
#include <cstring>

namespace
{

constexpr float BETA1 = 0.9f, BETA2 = 0.99f, DECAY = 0.01f;
constexpr uint64_t WORKSPACE_BYTES = 32u << 20; /* What cuBLAS's manual asks for on Hopper; enough elsewhere. */
constexpr int BATCHES = 64;

/* splitmix64 */
uint64_t next(uint64_t &state)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* From -1 to 1. */
float uniform(uint64_t &state)
{
    return static_cast<float>(next(state) >> 40) / 8388608.0f - 1.0f;
}

void mark(stepgraph_step *step, const char *stage)
{
    if (step != nullptr)
        (void)stepgraph_step_mark(step, stage); /* What broke a recording is told by its end. */
}

int layer_rows(const Shape &shape, int layer)
{
    return layer == shape.layers - 1 ? shape.classes : shape.width;
}

int layer_columns(const Shape &shape, int layer)
{
    return layer == 0 ? shape.in : shape.width;
}

size_t all_parameters(const Shape &shape)
{
    size_t n = 0;

    for (int i = 0; i < shape.layers; i++)
        n += static_cast<size_t>(layer_rows(shape, i)) * static_cast<size_t>(layer_columns(shape, i) + 1);
    return n;
}

/* z and a of each layer, two gradients of activations, and the losses of the samples. */
size_t all_activations(const Shape &shape)
{
    size_t widest = static_cast<size_t>(shape.width > shape.classes ? shape.width : shape.classes);

    return (2 * static_cast<size_t>(shape.layers) + 2) * widest * static_cast<size_t>(shape.batch) +
           static_cast<size_t>(shape.batch);
}

} // namespace

/* ---- cuBLAS ------------------------------------------------------------------------------------------------------ */

/*
 * The workspace. Without one of the host's, cuBLAS allocates: outside of a recording from memory of its own, inside of one by
 * nodes of the graph, a pair for each product that needs it. Which algorithm it takes depends on how much it has, and so do the
 * bits. A pin has the same address and the same size always, the audit knows it by name, and a check fills it with rubbish before
 * each run, as befits SCRATCH.
 *
 * cublasSetStream() takes a workspace away again, so the stream comes first.
 */
Blas::Blas(const host::Session &session, Workspace kind) : session_(session)
{
    host::check_code(cublasCreate(&handle_), "cublasCreate");
    try {
        //! [workspace]
        host::check_code(cublasSetStream(handle_, session.stream()), "cublasSetStream");
        if (kind == Workspace::Pin) {
            pin_ = std::make_unique<host::Pin>(session, "cublas.workspace", STEPGRAPH_ROLE_SCRATCH, WORKSPACE_BYTES,
                                               STEPGRAPH_TYPE_BYTES);
            set_workspace(pin_->at(), pin_->bytes());
            //! [workspace]
        } else if (kind == Workspace::Own) {
            for (uint64_t &address : own_)
                host::check_code(session.call<int(uint64_t *, size_t)>("cuMemAlloc", 3020)(&address, WORKSPACE_BYTES),
                                 "cuMemAlloc");
            set_workspace(own_[0], WORKSPACE_BYTES);
        }
    } catch (...) {
        cublasDestroy(handle_);
        throw;
    }
}

Blas::~Blas()
{
    cublasDestroy(handle_);
    for (uint64_t address : own_)
        if (address != 0)
            session_.call<int(uint64_t)>("cuMemFree", 3020)(address);
}

void Blas::set_workspace(uint64_t address, uint64_t bytes) const
{
    host::check_code(cublasSetWorkspace(handle_, reinterpret_cast<void *>(address), bytes), "cublasSetWorkspace");
}

void Blas::regrow()
{
    std::swap(own_[0], own_[1]);
    set_workspace(own_[0], WORKSPACE_BYTES);
}

void Blas::multiply(bool transpose_a, bool transpose_b, int m, int n, int k, uint64_t a, int rows_a, uint64_t b, int rows_b,
                    uint64_t c) const
{
    const float one = 1, zero = 0;

    host::check_code(cublasSgemm(handle_, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, n,
                                 k, &one, reinterpret_cast<const float *>(a), rows_a, reinterpret_cast<const float *>(b), rows_b,
                                 &zero, reinterpret_cast<float *>(c), m),
                     "cublasSgemm");
    stepgraph_session_count(session_, STEPGRAPH_KIND_KERNEL,
                            1); /* At least; only fewer recorded than counted would be a fault. */
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

Mlp::Mlp(const host::Session &session, const Shape &shape, uint64_t seed, Workspace workspace, int rank, int ranks)
    : session_(session), shape_(shape), seed_(seed), kernels_(session, cublas_kernels_ptx), bias_(kernels_.find("bias")),
      bias_silu_(kernels_.find("bias_silu")), silu_backward_(kernels_.find("silu_backward")),
      bias_backward_(kernels_.find("bias_backward")), softmax_loss_(kernels_.find("softmax_loss")), mean_(kernels_.find("mean")),
      count_step_(kernels_.find("count_step")), adamw_(kernels_.find("adamw")), blas_(session, workspace),
      powers_(session, "adamw.powers", STEPGRAPH_ROLE_STATE, 2 * sizeof(float)),
      x_(session, "x", STEPGRAPH_ROLE_FEED, static_cast<uint64_t>(shape.in) * static_cast<uint64_t>(shape.batch) * sizeof(float)),
      labels_(session, "labels", STEPGRAPH_ROLE_FEED, static_cast<uint64_t>(shape.batch) * sizeof(int), STEPGRAPH_TYPE_BYTES),
      rate_(session, "rate", STEPGRAPH_ROLE_CELL, sizeof(float)), loss_(session, "loss", STEPGRAPH_ROLE_OUTPUT, sizeof(float)),
      activations_(session, "activations", STEPGRAPH_ROLE_SCRATCH, all_activations(shape) * sizeof(float)),
      gradients_(session, "gradients", STEPGRAPH_ROLE_SCRATCH, all_parameters(shape) * sizeof(float)),
      fresh_(session, "new parameters", STEPGRAPH_ROLE_SCRATCH, all_parameters(shape) * sizeof(float))
{
    for (int i = 0; i < shape.layers; i++) {
        std::string name = "layer" + std::to_string(i);
        count_ += add_parameter(name + ".weight", rows(i), columns(i), count_);
        count_ += add_parameter(name + ".bias", rows(i), 1, count_);
    }
    for (const Parameter &p : parameters_) {
        committed_.push_back(p.value);
        fresh_at_.push_back(fresh_.at() + p.offset * sizeof(float));
    }
    make_batches(seed, rank, ranks);
    reset();
}

size_t Mlp::add_parameter(const std::string &name, int rows, int columns, size_t offset)
{
    size_t n = static_cast<size_t>(rows) * static_cast<size_t>(columns);

    parameters_.push_back({host::Pin(session_, name, STEPGRAPH_ROLE_STATE, n * sizeof(float)),
                           host::Pin(session_, name + ".first", STEPGRAPH_ROLE_STATE, n * sizeof(float)),
                           host::Pin(session_, name + ".second", STEPGRAPH_ROLE_STATE, n * sizeof(float)), offset, rows,
                           columns});
    return n;
}

int Mlp::rows(int layer) const
{
    return layer_rows(shape_, layer);
}

int Mlp::columns(int layer) const
{
    return layer_columns(shape_, layer);
}

/* Before and after the nonlinearity of a layer, in the activations. The places behind those of the layers: gradients, and losses.
 */
uint64_t Mlp::z(int layer) const
{
    size_t widest = static_cast<size_t>(shape_.width > shape_.classes ? shape_.width : shape_.classes);

    return activations_.at() + 2 * static_cast<size_t>(layer) * widest * static_cast<size_t>(shape_.batch) * sizeof(float);
}

uint64_t Mlp::a(int layer) const
{
    return (z(layer) + z(layer + 1)) / 2;
}

/* Points in a box, labelled by a fixed linear map: something that can be learned. */
void Mlp::make_batches(uint64_t seed, int rank, int ranks)
{
    size_t in = static_cast<size_t>(shape_.in), classes = static_cast<size_t>(shape_.classes);
    uint64_t state = seed ^ 0x7465616368657200u;
    std::vector<float> teacher(classes * in);

    for (float &t : teacher)
        t = uniform(state);
    for (int i = 0; i < BATCHES; i++) {
        uint64_t draw = seed + 0x10001u * static_cast<uint64_t>(i * ranks + rank);
        Batch batch;
        batch.x.resize(in * static_cast<size_t>(shape_.batch));
        for (float &x : batch.x)
            x = uniform(draw);
        for (size_t k = 0; k < static_cast<size_t>(shape_.batch); k++) {
            int best = 0;
            float top = -1e30f;
            for (size_t c = 0; c < classes; c++) {
                float sum = 0;
                for (size_t j = 0; j < in; j++)
                    sum += teacher[c * in + j] * batch.x[k * in + j];
                if (sum > top) {
                    top = sum;
                    best = static_cast<int>(c);
                }
            }
            batch.labels.push_back(best);
        }
        batches_.push_back(std::move(batch));
    }
}

void Mlp::reset()
{
    const float ones[2] = {1, 1};
    uint64_t state = seed_;

    for (const Parameter &p : parameters_) {
        std::vector<float> values(static_cast<size_t>(p.rows) * static_cast<size_t>(p.columns)), zeros(values.size());
        float scale = p.columns > 1 ? std::sqrt(3.0f / static_cast<float>(p.columns)) : 0;
        for (float &v : values)
            v = scale * uniform(state);
        p.value.write(values.data());
        p.first.write(zeros.data());
        p.second.write(zeros.data());
    }
    powers_.write(ones);
}

void Mlp::feed(uint64_t k)
{
    const Batch &batch = batches_[k % BATCHES];
    float warm = k < 20 ? static_cast<float>(k + 1) / 20.0f : 1.0f;

    host::check(stepgraph_pin_feed(x_, batch.x.data(), x_.bytes()));
    host::check(stepgraph_pin_feed(labels_, batch.labels.data(), labels_.bytes()));
    host::check(stepgraph_pin_feed_f32(rate_, 0.002f * warm / (1.0f + static_cast<float>(k) / 500.0f)));
}

void Mlp::forward_backward(stepgraph_step *step)
{
    const int last = shape_.layers - 1, batch = shape_.batch;
    uint64_t losses = z(shape_.layers + 1), d = z(shape_.layers), d_below = a(shape_.layers);

    mark(step, "forward");
    for (int i = 0; i <= last; i++) {
        const Parameter &w = parameters_[2 * static_cast<size_t>(i)], &b = parameters_[2 * static_cast<size_t>(i) + 1];
        blas_.multiply(false, false, rows(i), batch, columns(i), w.value.at(), rows(i), i == 0 ? x_.at() : a(i - 1), columns(i),
                       z(i));
        if (i < last)
            kernels_.launch(bias_silu_, rows(i) * batch, z(i), b.value.at(), a(i), rows(i), rows(i) * batch);
        else
            kernels_.launch(bias_, rows(i) * batch, z(i), b.value.at(), rows(i), rows(i) * batch);
    }
    kernels_.launch(softmax_loss_, batch, z(last), labels_.at(), d, losses, shape_.classes, batch);
    kernels_.launch(mean_, 1, losses, loss_.at(), batch);

    mark(step, "backward");
    for (int i = last; i >= 0; i--) {
        const Parameter &w = parameters_[2 * static_cast<size_t>(i)], &b = parameters_[2 * static_cast<size_t>(i) + 1];
        blas_.multiply(false, true, rows(i), columns(i), batch, d, rows(i), i == 0 ? x_.at() : a(i - 1), columns(i),
                       gradients() + w.offset * sizeof(float));
        kernels_.launch(bias_backward_, rows(i), d, gradients() + b.offset * sizeof(float), rows(i), batch);
        if (i == 0)
            break;
        blas_.multiply(true, false, columns(i), batch, rows(i), w.value.at(), rows(i), d, rows(i), d_below);
        kernels_.launch(silu_backward_, columns(i) * batch, d_below, z(i - 1), columns(i) * batch);
        std::swap(d, d_below);
    }
}

/* New parameters go to memory of their own, as in many frameworks, and are committed to their pins in one launch. */
void Mlp::update(stepgraph_step *step)
{
    mark(step, "update");
    kernels_.launch(count_step_, 1, powers_.at(), BETA1, BETA2);
    for (const Parameter &p : parameters_) {
        int n = p.rows * p.columns;
        kernels_.launch(adamw_, n, fresh_.at() + p.offset * sizeof(float), p.value.at(), p.first.at(), p.second.at(),
                        gradients() + p.offset * sizeof(float), rate_.at(), powers_.at(), BETA1, BETA2,
                        p.columns > 1 ? DECAY : 0.0f, n);
    }
    host::check(stepgraph_pin_commit_many(session_, committed_.size(), committed_.data(), fresh_at_.data()));
}

float Mlp::loss() const
{
    float value = 0;

    loss_.read(&value);
    return value;
}

std::vector<unsigned char> Mlp::state() const
{
    std::vector<unsigned char> all;
    std::vector<const host::Pin *> pins = {&powers_};

    for (const Parameter &p : parameters_)
        for (const host::Pin *pin : {&p.value, &p.first, &p.second})
            pins.push_back(pin);
    for (const host::Pin *pin : pins) {
        size_t at = all.size();
        all.resize(at + pin->bytes());
        pin->read(&all[at]);
    }
    return all;
}
