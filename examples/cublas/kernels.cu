/*
 * What cuBLAS does not do for the perceptron of mlp.cpp. Made into kernels.ptx by:
 *
 *     sh lib/kernels/ptx.sh examples/cublas/kernels.cu examples/cublas/kernels.ptx
 *
 * Matrices are stored column by column, as cuBLAS has them: a column is a sample. One thread makes one result and adds up in a fixed
 * order, so that every run gives the same bits.
 */

static __device__ int result(void)
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* z += bias, for every sample. */
extern "C" __global__ void bias(float *z, const float *b, int rows, int n)
{
    int i = result();
    if (i < n)
        z[i] += b[i % rows];
}

/* z += bias, a = z * sigmoid(z) */
extern "C" __global__ void bias_silu(float *z, const float *b, float *a, int rows, int n)
{
    int i = result();
    if (i < n) {
        float v = z[i] + b[i % rows];
        z[i] = v;
        a[i] = v / (1.0f + expf(-v));
    }
}

/* d, the gradient of a, becomes that of z. */
extern "C" __global__ void silu_backward(float *d, const float *z, int n)
{
    int i = result();
    if (i < n) {
        float s = 1.0f / (1.0f + expf(-z[i]));
        d[i] *= s * (1.0f + z[i] * (1.0f - s));
    }
}

/* The gradient of the bias. */
extern "C" __global__ void bias_backward(const float *d, float *d_b, int rows, int batch)
{
    int r = result();
    if (r >= rows)
        return;

    float sum = 0;
    for (int k = 0; k < batch; k++)
        sum += d[k * rows + r];
    d_b[r] = sum;
}

/* Cross-entropy of each sample against its label, and its gradient. */
extern "C" __global__ void softmax_loss(const float *logits, const int *labels, float *d, float *losses, int classes, int batch)
{
    int k = result();
    if (k >= batch)
        return;

    const float *x = logits + k * classes;
    float top = x[0], sum = 0;
    for (int c = 1; c < classes; c++)
        top = x[c] > top ? x[c] : top;
    for (int c = 0; c < classes; c++)
        sum += expf(x[c] - top);
    for (int c = 0; c < classes; c++)
        d[k * classes + c] = (expf(x[c] - top) / sum - (c == labels[k] ? 1.0f : 0.0f)) / (float)batch;
    losses[k] = logf(sum) + top - x[labels[k]];
}

/* One thread. */
extern "C" __global__ void mean(const float *values, float *out, int n)
{
    if (result() != 0)
        return;

    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += values[k];
    *out = sum / (float)n;
}

/* The step count of AdamW, on the device and in the form it is used in: powers = { beta1^t, beta2^t }. One thread. */
extern "C" __global__ void count_step(float *powers, float beta1, float beta2)
{
    if (result() != 0)
        return;
    powers[0] *= beta1;
    powers[1] *= beta2;
}

/* AdamW: the moments in place, the parameter out of place. What changes from step to step is read from the device. */
extern "C" __global__ void adamw(float *fresh, const float *p, float *first, float *second, const float *gradient, const float *rate,
                                 const float *powers, float beta1, float beta2, float decay, int n)
{
    int i = result();
    if (i >= n)
        return;

    float g = gradient[i];
    float m = beta1 * first[i] + (1.0f - beta1) * g;
    float v = beta2 * second[i] + (1.0f - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    fresh[i] = p[i] - *rate * (m / (1.0f - powers[0]) / (sqrtf(v / (1.0f - powers[1])) + 1e-8f) + decay * p[i]);
}
