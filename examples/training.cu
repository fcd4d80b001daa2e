/* The kernels of training.c. Made into training.ptx by: sh lib/kernels/ptx.sh examples/training.cu examples/training.ptx */

/* What a linear model answers to one row of a batch. */
static __device__ float answer(const float *weight, const float *row, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += weight[i] * row[i];
    return sum;
}

/* Add the gradient of half the mean square error of a batch. */
extern "C" __global__ void accumulate(float *gradient, const float *weight, const float *x, const float *y, int n, int rows)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0;
    if (i >= n)
        return;
    for (int r = 0; r < rows; r++)
        sum += (answer(weight, x + r * n, n) - y[r]) * x[r * n + i];
    gradient[i] += sum / (float)rows;
}

/* One step down, and the next gradient begins at zero. The learning rate is read from the device. */
extern "C" __global__ void descend(float *weight, float *gradient, const float *rate, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    weight[i] -= *rate * gradient[i];
    gradient[i] = 0;
}

/* The mean square error of a batch. */
extern "C" __global__ void evaluate(float *loss, const float *weight, const float *x, const float *y, int n, int rows)
{
    float sum = 0;
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    for (int r = 0; r < rows; r++) {
        float error = answer(weight, x + r * n, n) - y[r];
        sum += error * error;
    }
    *loss = sum / (float)rows;
}
