/* Kernel packs: shared objects with the bodies of kernels, found by name. */
#include "core.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>

static const struct cusim_pack **packs;
static const struct cusim_variable **variables; /* Of each pack; NULL: none. */
static size_t num_packs, packs_room, variables_room;
static char *loaded_from; /* CUSIM_KERNELS as it was when they were loaded. */
static bool beside_done;

/* Packs stay: graphs in flight may run their code. */
static void load_file(const char *path, bool loud)
{
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!so) {
        if (loud)
            cs_say("kernel pack %s: %s", path, dlerror());
        return;
    }
    const struct cusim_pack *pack = dlsym(so, "cusim_pack_table");
    if (!pack || pack->abi != CUSIM_PACK_ABI) {
        if (loud)
            cs_say("kernel pack %s: %s", path, pack ? "made for another cusim" : "no cusim_pack_table");
        dlclose(so);
        return;
    }
    for (size_t i = 0; i < num_packs; i++)
        if (packs[i] == pack)
            return;
    packs = cs_grow(packs, &packs_room, num_packs + 1, sizeof *packs);
    variables = cs_grow(variables, &variables_room, num_packs + 1, sizeof *variables);
    variables[num_packs] = dlsym(so, "cusim_variable_table");
    packs[num_packs++] = pack;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    char **names = NULL;
    size_t n = 0, room = 0;
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0) {
            names = cs_grow(names, &room, n + 1, sizeof *names);
            names[n++] = strdup(entry->d_name);
        }
    }
    closedir(dir);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
            load_file(path, false);
        free(names[i]);
    }
    free(names);
}

static void load_path(const char *path)
{
    char here[PATH_MAX];
    struct stat st;

    if (stat(path, &st) != 0)
        cs_say("CUSIM_KERNELS: no %s", path);
    else if (S_ISDIR(st.st_mode))
        load_folder(path);
    else if (strchr(path, '/') != NULL)
        load_file(path, true);
    else if (snprintf(here, sizeof here, "./%s", path) < (int)sizeof here) /* A bare name would be looked for where libraries are. */
        load_file(here, true);
}

static void load_beside(void)
{
    char path[PATH_MAX];
    Dl_info info;

    if (!dladdr((void *)(uintptr_t)&cs, &info) || !info.dli_fname)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash ? (int)(slash - info.dli_fname) : 1;
    if (snprintf(path, sizeof path, "%.*s/kernels", length, slash ? info.dli_fname : ".") < (int)sizeof path)
        load_folder(path);
}

static void load_new(void)
{
    const char *list = getenv("CUSIM_KERNELS");

    if (list && (!loaded_from || strcmp(list, loaded_from) != 0)) {
        char *copy = strdup(list), *save = NULL;

        free(loaded_from);
        loaded_from = strdup(list);
        for (char *p = strtok_r(copy, ":", &save); p; p = strtok_r(NULL, ":", &save))
            load_path(p);
        free(copy);
    }
    if (!beside_done) {
        beside_done = true;
        load_beside();
    }
}

const struct cusim_kernel *cs_pack_find(const char *name)
{
    load_new();
    for (size_t i = 0; i < num_packs; i++)
        for (unsigned k = 0; k < packs[i]->num_kernels; k++)
            if (strcmp(packs[i]->kernels[k].name, name) == 0)
                return &packs[i]->kernels[k];
    return NULL;
}

const struct cusim_variable *cs_pack_find_variable(const char *name)
{
    load_new();
    for (size_t i = 0; i < num_packs; i++)
        for (const struct cusim_variable *v = variables[i]; v && v->name; v++)
            if (strcmp(v->name, name) == 0)
                return v;
    return NULL;
}
