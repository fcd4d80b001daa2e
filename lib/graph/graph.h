/*
 * A captured graph, read back: its nodes, and every word in them that may be an address. Knows the driver table only.
 */
#ifndef STEPGRAPH_GRAPH_GRAPH_H
#define STEPGRAPH_GRAPH_GRAPH_H

#include <stdbool.h>

#include "layout.h"
#include "rows.h"
#include "values.h"

/* A struct beyond so many bytes is mostly a container of which one call uses a part; what lies in the rest is left over from earlier calls. */
#define SG__SMALL_STRUCT 64u

/* The mark of a value that stands in some smaller argument, too. */
#define SG__VALUE_SET (1u << 31)

/* What an address can be: neither a small number nor beyond the 57 bits that a device address has at most. */
static inline bool sg__may_be_address(uint64_t value)
{
    return value >= 0x10000 && value < (uint64_t)1 << 57;
}

typedef struct sg__graph_node {
    CUgraphNode handle;
    CUgraphNodeType type;
    uint32_t top;        /* Index of the node, or of the child graph it is in, among the nodes that were recorded. */
    CUfunction function; /* Of a kernel node. */
    const sg__layout *layout; /* Of its kernel, with the name; NULL of other nodes. */
    uint64_t print;      /* Of a kernel node whose arguments were read: kernel, shape and arguments in one number. 0: of none. */
    uint32_t bytes;      /* Of those arguments, as many as the node holds. */
} sg__graph_node;

/* Where a word stands in its node. */
typedef enum sg__word_place {
    SG__WORD_ARGUMENT,    /* In a kernel argument. */
    SG__WORD_SOURCE,      /* What a copy reads or a memory operation waits for, */
    SG__WORD_DESTINATION, /* and what a copy, a set or a memory operation writes. */
    SG__WORD_EXTENT,      /* How much it copies or sets, or how many operations there are. */
    SG__WORD_VALUE,       /* The value of a set or of a memory operation. */
    SG__WORD_OPERATION,   /* Which memory operation. */
    SG__WORD_SHAPE,       /* Grid, block and shared memory of a launch: argument 0 to 6. */
    SG__WORD_FUNCTION,    /* Which kernel. */
    SG__WORD_HOST,        /* Of a host function: itself, or its argument, as argument 0 and 1. */
    SG__WORD_EVENT        /* That is recorded, or waited for, as argument 0 and 1. */
} sg__word_place;

typedef struct sg__graph_word {
    uint64_t value;
    uint32_t node;     /* Index of the node. */
    uint16_t place;    /* sg__word_place. */
    uint16_t argument; /* Index of the argument. */
    uint32_t offset;   /* Byte in the argument. */
    uint64_t bytes;    /* Of an operand: how far it reaches. 0: unknown. */
    sg__rows rows;     /* And which bytes on the way there are its own. */
    CUmemorytype type; /* Of an operand: what the driver was told; UNIFIED where it was told nothing. 0: of an argument. */
} sg__graph_word;

/* Whether an operand, as far as it is known, has any of these bytes. */
static inline bool sg__graph_word_touches(const sg__graph_word *word, CUdeviceptr start, uint64_t bytes)
{
    const CUdeviceptr reach = word->value + (word->bytes != 0 ? word->bytes : 1), from = start > word->value ? start : word->value;
    const CUdeviceptr to = start + bytes < reach ? start + bytes : reach;

    return from < to && sg__rows_touch(word->rows, from - word->value, to - word->value);
}

typedef struct sg__graph_range {
    CUdeviceptr start;
    size_t bytes;
    uint32_t node; /* That allocates it. */
} sg__graph_range;

typedef struct sg__graph {
    CUgraph handle;
    sg__graph_node *nodes; /* In the order of the calls that made them; the nodes of a child graph follow their parent. */
    size_t n_nodes;
    sg__graph_word *words;
    size_t n_words;
    sg__graph_range *owned; /* Memory that the graph allocates itself. */
    size_t n_owned;
    CUdeviceptr owned_low, owned_high; /* All of it lies between. */
    CUdeviceptr *freed; /* What it frees. */
    size_t n_freed;
    uint32_t *unread;   /* Nodes whose contents could not be read. */
    size_t n_unread;
    sg__layouts layouts; /* Of the kernels in it, with their names. */
} sg__graph;

/* Whether the word of a kernel's argument needs no keeping. entry: that of its number; NULL: numbers are not counted, or it could not be remembered. */
typedef bool (*sg__graph_settle_fn)(void *user, uint64_t value, sg__value *entry);

/* Read everything. kernels: what is known of them, bytes that none reads counting as 0; lives as long as the result; NULL: nothing. settle: NULL keeps all words.
 * The graph is not under capture.
 * Free the result also after a failure. */
stepgraph_status sg__graph_read(const sg__driver *driver, CUgraph graph, sg__known_kernels *kernels, sg__graph_settle_fn settle, void *user, sg__graph *out);

/* The same, but settle is asked once about each number, and only the word where it stands first may be kept. values, empty before, then tells how
 * often each one stands in arguments. (Where there is no memory to remember it, a number is taken for a new one each time.) */
stepgraph_status sg__graph_read_values(const sg__driver *driver, CUgraph graph, sg__known_kernels *kernels, sg__values *values, sg__graph_settle_fn settle,
                                       void *user, sg__graph *out);
void sg__graph_free(sg__graph *graph);

/* One argument of a kernel node, whole. */
typedef stepgraph_status (*sg__graph_argument_fn)(void *user, uint32_t node, uint16_t argument, const unsigned char *bytes, size_t n);

/* Walk over all arguments of a graph that was read, in order. Ends with the first status that is not OK. */
stepgraph_status sg__graph_arguments(const sg__driver *driver, const sg__graph *graph, sg__graph_argument_fn visit, void *user);

/* Forget the words, which are many; the nodes stay. */
void sg__graph_free_words(sg__graph *graph);

/* What nodes of a type do: "copy", "set" and so on. */
const char *sg__node_kind_name(CUgraphNodeType type);

/* The kernel's name, readable and short, or what the node does. Not cheap the first time. */
const char *sg__node_name(const sg__graph_node *node);

/* What a node of a graph under capture does, and its kernel's name, held by the caller; NULL: it has none. */
const char *sg__graph_handle_kind(const sg__driver *driver, CUgraphNode handle, sg__name **name_out);

/* One node comes after another; indices of nodes. */
typedef struct sg__graph_edge {
    uint32_t from, to;
} sg__graph_edge;

typedef struct sg__graph_edges {
    sg__graph_edge *items; /* By the later node, and for one node in the driver's order, which is mostly the same for equal graphs. */
    size_t n, room;
    bool partial;      /* The driver does not tell all of them. */
    bool programmatic; /* Some are those of programmatic launches, which mean another order than that of whole kernels. */
    uint64_t kinds;    /* What these mean, in one number: another one where they are others. */
} sg__graph_edges;

/* The edges of a graph that was read, those of child graphs included. Free the result also after a failure. */
stepgraph_status sg__graph_edges_read(const sg__driver *driver, const sg__graph *graph, sg__graph_edges *out);
/* By the later node, then by the earlier one. */
void sg__graph_edges_sort(sg__graph_edges *edges);
void sg__graph_edges_free(sg__graph_edges *edges);

/* One word that graphs do not have in common. */
typedef struct sg__graph_difference {
    uint32_t node;
    sg__word_place place;
    uint32_t argument, offset, bytes; /* At most 8 bytes. */
    size_t extent;                    /* Of the whole argument; 0: it is not in one. */
    const uint64_t *values;           /* One for each graph. */
    const unsigned char *const *arguments; /* All of the argument, one for each graph; NULL where extent is 0. */
} sg__graph_difference;

typedef stepgraph_status (*sg__graph_difference_fn)(void *user, const sg__graph_difference *difference);

/* The graphs do not have the same nodes, from this one on. */
typedef struct sg__graph_mismatch {
    uint32_t node;
    char text[256];
} sg__graph_mismatch;

/* "first", "second": how one of several recordings is called. */
const char *sg__ordinal(size_t index);

/* Compare graphs that were read, word by word: kernel arguments, launch shapes, operands. Calls back for each word that is not the same in all
 * of them, in order. *mismatch has an empty text when nodes and edges match. *bytes_out counts what was compared. */
stepgraph_status sg__graph_compare(const sg__driver *driver, size_t n, sg__graph *const *graphs, sg__graph_difference_fn report, void *user,
                                   sg__graph_mismatch *mismatch, uint64_t *bytes_out);

#endif
