/*
 * What the C++ examples share: statuses as exceptions, and a session, pins, kernels and a loop that give themselves back. No CUDA
 * header is needed for any of it; the driver's entry points come through the session.
 */
#ifndef EXAMPLES_HOST_HPP
#define EXAMPLES_HOST_HPP

#include <stepgraph/stepgraph.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace host
{

/* What went wrong, in one sentence. */
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* There is no card here: nothing was tried. */
struct NoCard : Failure {
    using Failure::Failure;
};

inline std::string last_words()
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    stepgraph_last_error(&info);
    return info.message;
}

inline void check(stepgraph_status status)
{
    if (status != STEPGRAPH_OK)
        throw Failure(last_words());
}

/* A code of the driver, of cuBLAS or of NCCL; 0 is success everywhere. */
inline void check_code(int code, const char *call)
{
    if (code != 0)
        throw Failure(std::string(call) + " answers " + std::to_string(code));
}

inline double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Session
{
  public:
    explicit Session(int device, stepgraph_log_fn log = nullptr)
    {
        stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

        config.device = device;
        config.log = log;
        config.log_level = STEPGRAPH_LOG_INFO;
        /* No context is given, so it is the device's primary one, which is that of cuBLAS and NCCL too. */
        stepgraph_status status = stepgraph_session_open(&config, &session_);
        if (status == STEPGRAPH_ERR_NO_DRIVER)
            throw NoCard(last_words());
        check(status);
        try {
            check(stepgraph_session_get_info(session_, &info_));
            if (info_.software != 0)
                throw NoCard("cuBLAS and NCCL know the real driver only, and the session's is a simulation");
            check_code(call<int(CUctx_st *)>("cuCtxSetCurrent", 4000)(stepgraph_session_context(session_)), "cuCtxSetCurrent");
        } catch (...) {
            stepgraph_session_close(session_);
            throw;
        }
    }
    ~Session()
    {
        stepgraph_session_close(session_);
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    operator stepgraph_session *() const
    {
        return session_;
    }
    const stepgraph_session_info &info() const
    {
        return info_;
    }
    CUstream_st *stream() const
    {
        return stepgraph_session_stream(session_);
    }
    void wait() const
    {
        check(stepgraph_session_wait(session_));
    }
    /* An entry point of the driver: its name, and the CUDA version that gave it this signature. */
    template <class Signature> Signature *call(const char *name, int version) const
    {
        void *found = stepgraph_session_symbol(session_, name, version);

        if (found == nullptr)
            throw Failure(std::string("the driver has no ") + name);
        return reinterpret_cast<Signature *>(found);
    }

  private:
    stepgraph_session *session_ = nullptr;
    stepgraph_session_info info_ = STEPGRAPH_SESSION_INFO_INIT;
};

class Pin
{
  public:
    /* address: memory to adopt; 0: the library allocates. */
    Pin(const Session &session, const std::string &name, stepgraph_role role, uint64_t bytes,
        stepgraph_type type = STEPGRAPH_TYPE_F32, uint64_t address = 0)
    {
        stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;

        config.name = name.c_str();
        config.role = role;
        config.bytes = bytes;
        config.type = type;
        config.address = address;
        check(stepgraph_pin_create(session, &config, &pin_));
    }
    ~Pin()
    {
        stepgraph_pin_destroy(pin_);
    }
    Pin(Pin &&other) noexcept : pin_(other.pin_)
    {
        other.pin_ = nullptr;
    }
    Pin &operator=(Pin &&) = delete;

    operator stepgraph_pin *() const
    {
        return pin_;
    }
    uint64_t at() const
    {
        return stepgraph_pin_address(pin_);
    }
    uint64_t bytes() const
    {
        return stepgraph_pin_bytes(pin_);
    }
    void write(const void *data) const
    {
        check(stepgraph_pin_write(pin_, data, bytes()));
    }
    void read(void *data) const
    {
        check(stepgraph_pin_read(pin_, data, bytes()));
    }

  private:
    stepgraph_pin *pin_ = nullptr;
};

/* Kernels from PTX. One thread makes one result. */
class Kernels
{
  public:
    Kernels(const Session &session, const char *ptx) : session_(session)
    {
        check_code(session.call<int(CUmod_st **, const void *)>("cuModuleLoadData", 2000)(&module_, ptx), "cuModuleLoadData");
    }
    ~Kernels()
    {
        session_.call<int(CUmod_st *)>("cuModuleUnload", 2000)(module_);
    }
    Kernels(const Kernels &) = delete;
    Kernels &operator=(const Kernels &) = delete;

    CUfunc_st *find(const char *name) const
    {
        CUfunc_st *found = nullptr;

        check_code(session_.call<int(CUfunc_st **, CUmod_st *, const char *)>("cuModuleGetFunction", 2000)(&found, module_, name),
                   name);
        return found;
    }
    /* The arguments have exactly the kernel's types: uint64_t for pointers, int, float. */
    template <class... Arguments> void launch(CUfunc_st *kernel, int threads, Arguments... arguments) const
    {
        void *pointers[] = {&arguments...};
        stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

        launch.function = kernel;
        launch.arguments = pointers;
        launch.grid[0] = static_cast<uint32_t>((threads + 127) / 128);
        launch.block[0] = 128;
        check(stepgraph_session_launch(session_, &launch));
    }

  private:
    struct CUmod_st;
    const Session &session_;
    CUmod_st *module_ = nullptr;
};

class Loop
{
  public:
    Loop(stepgraph_session *session, const stepgraph_loop_config &config)
    {
        check(stepgraph_loop_create(session, &config, &loop_));
    }
    ~Loop()
    {
        stepgraph_loop_destroy(loop_);
    }
    Loop(const Loop &) = delete;
    Loop &operator=(const Loop &) = delete;

    operator stepgraph_loop *() const
    {
        return loop_;
    }
    /* Step k, however the loop wants it done. Answers the kind of the turn that did it. What is thrown gives the turn up. */
    template <class Feed, class Run> uint32_t step(uint64_t k, Feed feed, Run run)
    {
        try {
            do {
                check(stepgraph_loop_begin(loop_, k, &turn_));
                if (turn_.feed)
                    feed(k);
                if (turn_.run)
                    enqueue(k, run);
                check(stepgraph_loop_end(loop_, &turn_));
            } while (turn_.again);
        } catch (...) {
            (void)stepgraph_loop_cancel(loop_);
            throw;
        }
        return turn_.kind;
    }
    stepgraph_loop_stats stats() const
    {
        stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

        check(stepgraph_loop_get_stats(loop_, &stats));
        return stats;
    }
    /* The graph that is replayed, for Graphviz. */
    void draw(const std::string &path) const
    {
        check(stepgraph_step_draw(stepgraph_loop_step(loop_, 0), STEPGRAPH_DRAW_DOT, path.c_str()));
    }
    const char *report() const
    {
        const char *text = "";

        check(stepgraph_loop_report(loop_, STEPGRAPH_REPORT_TEXT, &text));
        return text;
    }

  private:
    /* What fails while a step is recorded breaks the recording, and no more: its end tells, and the step is launched instead. */
    template <class Run> void enqueue(uint64_t k, Run run)
    {
        const int unknown = 999; /* CUDA_ERROR_UNKNOWN: the code of another library is none of the driver's. */

        try {
            run(k, turn_.step);
        } catch (const Failure &failure) {
            if (stepgraph_step_state(turn_.step) != STEPGRAPH_STEP_CAPTURING)
                throw;
            check(stepgraph_step_report(turn_.step, failure.what(), unknown));
        }
    }

    stepgraph_loop *loop_ = nullptr;
    stepgraph_turn turn_ = STEPGRAPH_TURN_INIT;
};

/* Median host time of a step, and time of a step when many are queued. */
struct Times {
    double host_us, step_us;
};

template <class Step> Times measure(const Session &session, int n, Step step)
{
    const int ahead = 6; /* As many as can be fed without a wait; see stepgraph_session_config::feed_slots. */
    std::vector<double> host;

    session.wait();
    double began = now_us();
    for (int i = 0; i < n; i++)
        step();
    session.wait();
    double all = now_us() - began;
    for (int i = 0; i < n; i++) {
        double t = now_us();
        step();
        host.push_back(now_us() - t);
        if (i % ahead == ahead - 1)
            session.wait();
    }
    session.wait();
    std::sort(host.begin(), host.end());
    return {host[host.size() / 2], all / n};
}

inline void print_times(const Times &launched, const Times &replayed)
{
    printf("\n%-28s %12s %12s\n", "", "launched", "replayed");
    printf("%-28s %9.1f us %9.1f us\n", "host time of a step", launched.host_us, replayed.host_us);
    printf("%-28s %9.1f us %9.1f us\n", "step, many queued", launched.step_us, replayed.step_us);
}

} // namespace host

#endif
