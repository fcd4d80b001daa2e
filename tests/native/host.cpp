/* What the C++ examples share, as far as it needs no card: a step whose host throws leaves no turn open and nothing recording. */
#include "../../examples/cublas/host.hpp"

#include <new>

/* Step k on a loop whose host throws in feed() or in run(), or in neither. True: what was thrown came out. */
template <class Thrown>
static bool throws(host::Loop &loop, stepgraph_pin *pin, uint64_t k, bool in_feed, bool in_run, Thrown thrown)
{
    const unsigned char value[8] = {static_cast<unsigned char>(k)};

    try {
        loop.step(
            k,
            [&](uint64_t) {
                if (in_feed)
                    throw thrown;
                host::check(stepgraph_pin_feed(pin, value, sizeof value));
            },
            [&](uint64_t, stepgraph_step *) {
                if (in_run)
                    throw thrown;
            });
    } catch (const Thrown &) {
        return true;
    }
    return false;
}

int main()
{
    stepgraph_session_config session_config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_pin_config pin_config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_session *session = nullptr;
    stepgraph_pin *pin = nullptr;
    int wrong = 0;

    host::check(stepgraph_session_open(&session_config, &session));
    pin_config.name = "fed";
    pin_config.role = STEPGRAPH_ROLE_FEED;
    pin_config.bytes = 8;
    host::check(stepgraph_pin_create(session, &pin_config, &pin));
    try {
        host::Loop loop(session, config);
        /* Warm-up, the recordings, and what becomes of a step that records nothing. */
        for (uint64_t k = 0; k < 8; k++) {
            if (!throws(loop, pin, k, true, false, host::Failure("no batch")))
                wrong += printf("step %d: what feed() threw was lost\n", static_cast<int>(k));
            if (!throws(loop, pin, k, k % 2 != 0, true, std::bad_alloc()))
                wrong += printf("step %d: what run() threw was lost\n", static_cast<int>(k));
            if (throws(loop, pin, k, false, false, host::Failure("")))
                wrong += printf("step %d was not done\n", static_cast<int>(k));
        }
    } catch (const std::exception &why) {
        wrong += printf("after an exception of the host's: %s\n", why.what());
    }
    host::check(stepgraph_pin_destroy(pin));
    host::check(stepgraph_session_close(session));
    return wrong != 0;
}
