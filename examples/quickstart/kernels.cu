/*
 * The trainer's device kernels: a small character model, forward and backward, and what comes after the gradient.
 *
 * One thread makes one result and adds up in a fixed order, so every run gives the same bits. No shared memory, no barriers, no
 * atomics: the same source is compiled to PTX for the card (sh lib/kernels/ptx.sh) and by the host compiler for cusim.
 *
 * Matrices are stored row by row. A weight matrix has one row per output.
 */

static __device__ int thread_index(void)
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* Dot product of two vectors in memory. Four sums side by side: always the same four, so always the same rounding. */
static __device__ float dot(const float *a, const float *b, int n)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int k = 0;

    for (; k + 4 <= n; k += 4) {
        s0 += a[k] * b[k];
        s1 += a[k + 1] * b[k + 1];
        s2 += a[k + 2] * b[k + 2];
        s3 += a[k + 3] * b[k + 3];
    }
    for (; k < n; k++)
        s0 += a[k] * b[k];
    return (s0 + s1) + (s2 + s3);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* A row per label: 1 at the label, 0 elsewhere. */
extern "C" __global__ void one_hot(const int *labels, float *target, int batch, int vocabulary)
{
    int i = thread_index();
    if (i < batch * vocabulary)
        target[i] = labels[i / vocabulary] == i % vocabulary ? 1.0f : 0.0f;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Look up the vector of each character. `places` is batch * context. */
extern "C" __global__ void embed(const int *ids, const float *table, float *out, int places, int vector)
{
    int i = thread_index();
    if (i < places * vector)
        out[i] = table[ids[i / vector] * vector + i % vector];
}

/* y = x w' + b */
extern "C" __global__ void linear(const float *x, const float *w, const float *b, float *y, int batch, int in, int out)
{
    int i = thread_index();
    if (i < batch * out)
        y[i] = b[i % out] + dot(x + (i / out) * in, w + (i % out) * in, in);
}

/* a = z * sigmoid(z) */
extern "C" __global__ void silu(const float *z, float *a, int n)
{
    int i = thread_index();
    if (i < n)
        a[i] = z[i] / (1.0f + expf(-z[i]));
}

/* r = 1 / root mean square of a row of a */
extern "C" __global__ void inverse_rms(const float *a, float *r, int rows, int columns)
{
    int i = thread_index();
    if (i < rows)
        r[i] = 1.0f / sqrtf(dot(a + i * columns, a + i * columns, columns) / (float)columns + 1e-5f);
}

/* y = a, each row scaled by r, each column by its gain */
extern "C" __global__ void normalize(const float *a, const float *r, const float *gain, float *y, int rows, int columns)
{
    int i = thread_index();
    if (i < rows * columns)
        y[i] = a[i] * r[i / columns] * gain[i % columns];
}

/* y += x: the way around a layer, and its gradient's. */
extern "C" __global__ void add(float *y, const float *x, int n)
{
    int i = thread_index();
    if (i < n)
        y[i] += x[i];
}

/* Cross-entropy of each row of logits against its target, and its gradient. One thread per row. */
extern "C" __global__ void softmax_loss(const float *logits, const float *target, float *d_logits, float *row_loss, int batch,
                                        int vocabulary)
{
    int i = thread_index();
    if (i >= batch)
        return;

    const float *x = logits + i * vocabulary;
    const float *t = target + i * vocabulary;
    float *d = d_logits + i * vocabulary;
    float top = x[0], sum = 0;

    for (int k = 1; k < vocabulary; k++)
        top = x[k] > top ? x[k] : top;
    for (int k = 0; k < vocabulary; k++) {
        d[k] = expf(x[k] - top);
        sum += d[k];
    }
    for (int k = 0; k < vocabulary; k++)
        d[k] = (d[k] / sum - t[k]) / (float)batch;
    row_loss[i] = logf(sum) + top - dot(x, t, vocabulary);
}

/* One thread. */
extern "C" __global__ void mean(const float *values, float *out, int n)
{
    if (thread_index() != 0)
        return;

    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += values[k];
    *out = sum / (float)n;
}

/* ---- backward: d_x is the gradient of x ---------------------------------------------------------------------------- */

extern "C" __global__ void linear_dx(const float *d_y, const float *w, float *d_x, int batch, int in, int out)
{
    int i = thread_index();
    if (i >= batch * in)
        return;

    const float *d = d_y + (i / in) * out;
    float sum = 0;
    for (int o = 0; o < out; o++)
        sum += d[o] * w[o * in + i % in];
    d_x[i] = sum;
}

extern "C" __global__ void linear_dw(const float *d_y, const float *x, float *d_w, int batch, int in, int out)
{
    int i = thread_index();
    if (i >= out * in)
        return;

    float sum = 0;
    for (int row = 0; row < batch; row++)
        sum += d_y[row * out + i / in] * x[row * in + i % in];
    d_w[i] = sum;
}

extern "C" __global__ void linear_db(const float *d_y, float *d_b, int batch, int out)
{
    int i = thread_index();
    if (i >= out)
        return;

    float sum = 0;
    for (int row = 0; row < batch; row++)
        sum += d_y[row * out + i];
    d_b[i] = sum;
}

extern "C" __global__ void silu_dz(const float *z, const float *d_a, float *d_z, int n)
{
    int i = thread_index();
    if (i < n) {
        float s = 1.0f / (1.0f + expf(-z[i]));
        d_z[i] = d_a[i] * s * (1.0f + z[i] * (1.0f - s));
    }
}

extern "C" __global__ void normalize_dgain(const float *d_y, const float *a, const float *r, float *d_gain, int rows, int columns)
{
    int i = thread_index();
    if (i >= columns)
        return;

    float sum = 0;
    for (int row = 0; row < rows; row++)
        sum += d_y[row * columns + i] * a[row * columns + i] * r[row];
    d_gain[i] = sum;
}

/* What a row's entries share: the mean of d_y * gain * a. */
extern "C" __global__ void normalize_row(const float *d_y, const float *a, const float *gain, float *shared, int rows, int columns)
{
    int i = thread_index();
    if (i >= rows)
        return;

    float sum = 0;
    for (int k = 0; k < columns; k++)
        sum += d_y[i * columns + k] * gain[k] * a[i * columns + k];
    shared[i] = sum / (float)columns;
}

extern "C" __global__ void normalize_da(const float *d_y, const float *a, const float *r, const float *gain, const float *shared,
                                        float *d_a, int rows, int columns)
{
    int i = thread_index();
    if (i < rows * columns) {
        float inverse = r[i / columns];
        d_a[i] = inverse * (gain[i % columns] * d_y[i] - a[i] * inverse * inverse * shared[i / columns]);
    }
}

/* Each entry of the table looks for its character in the batch, in order: no atomics. */
extern "C" __global__ void embed_dtable(const int *ids, const float *d_out, float *d_table, int places, int vector, int vocabulary)
{
    int i = thread_index();
    if (i >= vocabulary * vector)
        return;

    float sum = 0;
    for (int place = 0; place < places; place++)
        if (ids[place] == i / vector)
            sum += d_out[place * vector + i % vector];
    d_table[i] = sum;
}

/* ---- after the gradient -------------------------------------------------------------------------------------------- */

/* The step count of AdamW, kept on the device in the form it is used in: decay = { beta1^t, beta2^t }. One thread. */
extern "C" __global__ void count_step(float *decay, float beta1, float beta2)
{
    if (thread_index() != 0)
        return;
    decay[0] *= beta1;
    decay[1] *= beta2;
}

/* One number of AdamW. */
static __device__ void adamw_one(int i, float *p_new, float *m_new, float *v_new, const float *p, const float *m, const float *v,
                                 const float *gradient, float rate, const float *decay, float beta1, float beta2,
                                 float weight_decay)
{
    float g = gradient[i];
    float first = beta1 * m[i] + (1.0f - beta1) * g;
    float second = beta2 * v[i] + (1.0f - beta2) * g * g;
    float step = first / (1.0f - decay[0]) / (sqrtf(second / (1.0f - decay[1])) + 1e-8f);

    m_new[i] = first;
    v_new[i] = second;
    p_new[i] = p[i] - rate * (step + weight_decay * p[i]);
}

/* AdamW, out of place: the new parameter and moments go to memory of their own. The learning rate is read from the device, so that a
 * graph does not freeze it; the other constants really are constant. */
extern "C" __global__ void adamw(float *p_new, float *m_new, float *v_new, const float *p, const float *m, const float *v,
                                 const float *gradient, const float *rate, const float *decay, float beta1, float beta2,
                                 float weight_decay, int n)
{
    int i = thread_index();
    if (i < n)
        adamw_one(i, p_new, m_new, v_new, p, m, v, gradient, *rate, decay, beta1, beta2, weight_decay);
}

/* The same with the learning rate as an argument, which a graph does freeze: for --break scalar. */
extern "C" __global__ void adamw_by_value(float *p_new, float *m_new, float *v_new, const float *p, const float *m, const float *v,
                                          const float *gradient, float rate, const float *decay, float beta1, float beta2,
                                          float weight_decay, int n)
{
    int i = thread_index();
    if (i < n)
        adamw_one(i, p_new, m_new, v_new, p, m, v, gradient, rate, decay, beta1, beta2, weight_decay);
}

/* Put each row back on the sphere of the given radius, out of place. One thread per row. */
extern "C" __global__ void retract(const float *p, float *p_new, int rows, int columns, float radius)
{
    int i = thread_index();
    if (i >= rows)
        return;

    const float *row = p + i * columns;
    float scale = radius / sqrtf(dot(row, row, columns) + 1e-12f);
    for (int k = 0; k < columns; k++)
        p_new[i * columns + k] = row[k] * scale;
}

/* Exponential moving average, in place. */
extern "C" __global__ void average(float *mean, const float *p, float keep, int n)
{
    int i = thread_index();
    if (i < n)
        mean[i] = keep * mean[i] + (1.0f - keep) * p[i];
}
