#include "client.c"
