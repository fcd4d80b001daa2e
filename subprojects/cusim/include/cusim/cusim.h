/**
 * @file
 * What cusim offers beside the driver interface: recognition, fault injection, counters and switches for tests.
 *
 * cusim is loaded by path, as a driver is; take these with dlsym(). None of them needs cuInit(). Each switch also has an
 * environment variable, read once, before the first call:
 *
 * | variable | meaning |
 * |---|---|
 * | CUSIM_KERNELS | kernel packs: files, or folders of *.so, separated by colons; `kernels/` beside libcusim.so is read as well |
 * | CUSIM_FAIL | `entry:n:code[,...]`: the n-th call of an entry returns that code and does nothing |
 * | CUSIM_DRIVER_VERSION | what cuDriverGetVersion says, 13000 if unset; entries newer than it do not exist |
 * | CUSIM_DEVICES | number of devices, 1 if unset |
 * | CUSIM_MEMORY | bytes of memory of a device, 16 GiB if unset; more gives CUDA_ERROR_OUT_OF_MEMORY |
 * | CUSIM_ADDRESS_POLICY | `reuse` (a freed address comes back at once), `never`, `move` (as late as possible) |
 * | CUSIM_STUB | 1: every entry returns CUDA_ERROR_STUB_LIBRARY and touches nothing, as the toolkit's stub library does |
 * | CUSIM_STRICT | 1: a launch of a graph fails if a copy or memset names freed memory; with checks on, kernels too |
 * | CUSIM_CHECK | checks that a card does not make: `off`, `report`, `fail` (the process exits with 86), `abort` (at once) |
 * | CUSIM_RACES | races that the checks look for: `off`, `copies` (if unset: not of two kernels), `kernels` (all) |
 * | CUSIM_DELAY_NS | time that passes before each operation of a stream begins |
 * | CUSIM_SEED | not 0: the order between streams, and between nodes of a graph without a path, is drawn from this number |
 *
 * docs/cusim.md says more.
 *
 * Where a card is silent or crashes, cusim speaks: work that touches freed or foreign memory, and a launch of a copy node whose
 * host or device operand was freed (a card dies of SIGSEGV in cuGraphLaunch), print one line on standard error that names the
 * kernel or node, and leave the context in error 700, which every later call returns.
 */
#ifndef CUSIM_CUSIM_H
#define CUSIM_CUSIM_H

#ifdef __cplusplus
extern "C" {
#endif

/** The version of cusim, such as "0.1.0". No other driver exports this name. */
const char *cusim_version(void);

/**
 * Let the @p nth call of an entry from now on return @p code without doing anything. 1 is the next call.
 *
 * @param entry  A base name (`cuMemAlloc`, all its versions count) or an ELF symbol (`cuMemAlloc_v2`).
 * @param nth    0 takes back what was asked for this entry.
 * @return 0, or -1 if there is no such entry or no room (64 at a time).
 */
int cusim_fail(const char *entry, unsigned nth, int code);

/** Calls of an entry so far, by base name or ELF symbol; failed and refused ones count. 0 for an unknown name. */
unsigned long cusim_calls(const char *entry);

/** Set every count to 0. */
void cusim_reset_calls(void);

/** "reuse", "never" or "move". Applies to later allocations. -1 for anything else. */
int cusim_set_address_policy(const char *policy);

/** Change what cuDriverGetVersion says and which entries can be looked up. */
void cusim_set_driver_version(int version);

/** Change the memory of a device. What is allocated stays. */
void cusim_set_memory(unsigned long long bytes);

/** As CUSIM_STUB. */
void cusim_set_stub(int on);

/** As CUSIM_STRICT. */
void cusim_set_strict(int on);

/** As CUSIM_CHECK; call it before anything is allocated. -1 for anything else. */
int cusim_set_check(const char *check);

/** As CUSIM_RACES. -1 for anything else. */
int cusim_set_races(const char *races);

/** The status of a process that fails because of findings. */
#define CUSIM_FINDINGS_STATUS 86

/** How many findings the checks have made. */
unsigned long cusim_findings(void);

/** Forget them. */
void cusim_reset_findings(void);

/** As CUSIM_SEED; the order begins anew. Executables that were launched keep the order of their nodes. Call it while nothing is queued. */
void cusim_set_seed(unsigned long long seed);

/** As CUSIM_DELAY_NS. */
void cusim_set_delay(unsigned long long ns);

/** Make one stream slow: the time before each of its operations, in place of cusim_set_delay(). -1: not a created stream. */
int cusim_set_stream_delay(void *stream, unsigned long long ns);

/**
 * Make the next executables slow: each launch of the i-th that is made from now on takes ns[i] longer, for i < n, at most 64. On a card executables of
 * one graph differ in the time they take, each always by as much.
 */
void cusim_set_executable_delays(const unsigned long long *ns, unsigned n);

#ifdef __cplusplus
}
#endif

#endif
