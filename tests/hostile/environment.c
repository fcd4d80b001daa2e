/* Run by environment.py: opens a session on whatever the environment names, and moves a few bytes there and back. 0 done, 2 refused with words. */
#include <stdio.h>
#include <string.h>

#include <stepgraph/stepgraph.h>

static int refused(const char *what)
{
    stepgraph_error_info why = STEPGRAPH_ERROR_INFO_INIT;

    stepgraph_last_error(&why);
    printf("%s: %s: %s\n", what, stepgraph_status_name((stepgraph_status)why.status), why.message);
    return why.status < 0 && why.message[0] != '\0' ? 2 : 1;
}

int main(void)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_session *session = NULL;
    stepgraph_pin *pin = NULL;
    char there[16] = "fifteen letters", back[16] = "";
    int status = 0;

    if (stepgraph_session_open(NULL, &session) != STEPGRAPH_OK)
        return refused("open");
    config.role = STEPGRAPH_ROLE_STATE;
    config.bytes = sizeof there;
    config.name = "pin";
    if (stepgraph_pin_create(session, &config, &pin) != STEPGRAPH_OK)
        status = refused("create");
    else if (stepgraph_pin_write(pin, there, sizeof there) != STEPGRAPH_OK || stepgraph_pin_read(pin, back, sizeof back) != STEPGRAPH_OK)
        status = refused("move");
    else if (memcmp(there, back, sizeof there) != 0)
        status = 1;
    if (stepgraph_pin_destroy(pin) != STEPGRAPH_OK || stepgraph_session_close(session) != STEPGRAPH_OK)
        return refused("close");
    if (status == 0)
        printf("done\n");
    return status;
}
