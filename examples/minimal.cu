/* The kernel of minimal.c. Made into minimal.ptx by: sh lib/kernels/ptx.sh examples/minimal.cu examples/minimal.ptx */

/* An optimizer, out of place: the new weight goes to memory of its own, the learning rate is read from the device. */
extern "C" __global__ void update(float *fresh, const float *weight, const float *rate, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        fresh[i] = weight[i] - *rate * (1.0f + 0.5f * weight[i]);
}
