/* The smallest user of the installed library:   client VERSION MISSING-DRIVER [DRIVER]. Also compiled as C++. */
#include <stdio.h>
#include <string.h>

#include <stepgraph/stepgraph.h>

static int say(const char *what, stepgraph_status status)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    stepgraph_last_error(&info);
    printf("%s: %s: %s\n", what, stepgraph_status_name(status), info.message);
    return info.message[0] == '\0' || info.status != status;
}

static int open_and_close(const char *driver)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    stepgraph_session *session = NULL;
    stepgraph_status status;

    config.driver_path = driver;
    status = stepgraph_session_open(&config, &session);
    if (status != STEPGRAPH_OK) {
        say("open", status);
        return 1;
    }
    status = stepgraph_session_get_info(session, &info);
    if (status == STEPGRAPH_OK)
        printf("driver %d, %s, from %s\n", (int)info.driver_version, info.device_name, info.driver_path);
    if (stepgraph_session_close(session) != STEPGRAPH_OK)
        return 1;
    return status != STEPGRAPH_OK || info.software != 1;
}

int main(int argc, char **argv)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_session *session = NULL;
    stepgraph_status status;
    char version[32];

    if (argc < 3)
        return 2;
    snprintf(version, sizeof version, "%u.%u.%u", (unsigned)(stepgraph_version() / 10000), (unsigned)(stepgraph_version() / 100 % 100),
             (unsigned)(stepgraph_version() % 100));
    printf("stepgraph %s\n", version);
    if (strcmp(version, argv[1]) != 0)
        return 1;

    config.driver_path = argv[2];
    status = stepgraph_session_open(&config, &session);
    if (status != STEPGRAPH_ERR_NO_DRIVER || session != NULL || say("open a driver that is not there", status) != 0)
        return 1;

    return argc > 3 ? open_and_close(argv[3]) : 0;
}
