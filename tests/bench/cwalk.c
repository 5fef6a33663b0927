/* The floor for a scan: one thread that opens the folders which a pruned walk has to open, lists
 * each, and decides by names and d_type alone; no project files, no skips but the usual ones.
 *
 * cc -O2 -o cwalk cwalk.c && ./cwalk FOLDER DEPTH      prints: repositories, folders opened
 *
 * With -DASK_FIRST it asks each folder for `.git` and `.jj` before it lists it, and lists no
 * repository of git's: as our own scan does.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const MARKERS[] = {".git", ".jj", ".hg", ".svn", ".sl", ".fslckout",
                                      "_FOSSIL_", ".bzr", ".pijul", "_darcs", NULL};
static const char *const BARE[] = {"HEAD", "objects", "refs", NULL};
static const char *const SKIPPED[] = {"node_modules", "bower_components", "venv", "env",
                                      "__pycache__", "site-packages", "Pods", "DerivedData",
                                      NULL};

struct place {
    struct place *next;
    int left;
    char path[];
};

static struct place *stack;
static long repositories, opened;

static int among(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (!strcmp(*names, name))
            return 1;
    return 0;
}

static void push(const char *above, const char *name, int left)
{
    size_t first = strlen(above), second = strlen(name);
    struct place *place = malloc(sizeof *place + first + second + 2);
    if (!place)
        exit(1);
    memcpy(place->path, above, first);
    place->path[first] = '/';
    memcpy(place->path + first + 1, name, second + 1);
    place->left = left;
    place->next = stack;
    stack = place;
}

#ifdef ASK_FIRST
static int is_git_checkout(const struct place *place)
{
    int is_git = 0;
    char *name = malloc(strlen(place->path) + sizeof "/.git");
    if (!name)
        exit(1);
    sprintf(name, "%s/.git", place->path);
    if (!access(name, F_OK)) {
        sprintf(name, "%s/.jj", place->path);
        is_git = faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) &&
                 !access(place->path, R_OK);
    }
    free(name);
    return is_git;
}
#endif

static void list(const struct place *place)
{
    struct place *before = stack;
    int is_repository = 0, bare = 0;
#ifdef ASK_FIRST
    if (is_git_checkout(place)) {
        repositories++;
        return;
    }
#endif
    int fd = open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder)
        return;
    opened++;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        is_repository |= among(MARKERS, name);
        bare += among(BARE, name);
        if (entry->d_type == DT_DIR && name[0] != '.' && place->left && !among(SKIPPED, name))
            push(place->path, name, place->left - 1);
    }
    closedir(folder);
    if (!is_repository && bare < 3)
        return;
    repositories++;
    while (stack != before) {
        struct place *inside = stack;
        stack = inside->next;
        free(inside);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: cwalk FOLDER DEPTH\n");
        return 2;
    }
    push(argv[1], ".", atoi(argv[2]));
    while (stack) {
        struct place *place = stack;
        stack = place->next;
        list(place);
        free(place);
    }
    printf("%ld %ld\n", repositories, opened);
    return 0;
}
