/*
 * kymo.h: a program says what it is doing, for a few nanoseconds.
 *
 * A program makes one file in memory and maps it. From then on a counter is one load, one addition and one store, and the text of
 * a command that begins is a copy of its bytes: no system call, no lock, no allocation, no clock. Whoever may read the file sees
 * the last complete version at any moment, also when the program was killed or stopped in the middle of an update.
 *
 * The layout is described byte by byte in docs/formats/shm.md; the Rust twin of this file is crates/shm. Everything is in this
 * header: C11 with GNU builtins (gcc, clang) or C++, on Linux, on little-endian machines of 64 bits. Include it first, or
 * compile with -D_GNU_SOURCE or -std=gnu11. With a C library that has its threads apart (glibc before 2.34) link with -pthread.
 *
 *     static kymo_publisher publisher;      // zeroed memory is a publisher, and a slot, that does nothing
 *     static kymo_slot slot;
 *
 *     kymo_open(&publisher, &config);       // on failure publisher.why says why; everything below is then a no-op
 *     kymo_slot_take(&publisher, &slot);    // once a process or thread
 *     kymo_begin(&slot, KYMO_SQL, text, length, stamp, 0);
 *     kymo_add(&slot, ROWS, 3);
 *     kymo_end(&slot);
 *
 * Rules: a slot has one writer, the thread that took it, and not from its signal handlers. A publisher and its slots stay where they are in memory while they are
 * open. After fork a slot of the parent does nothing in the child, which takes one of its own.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KYMO_H
#define KYMO_H

#if !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#if !defined(__linux__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ != 8
#error "kymo.h: Linux on a little-endian machine of 64 bits is needed"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version and limits ------------------------------------------------------------------------------------------------- */

#define KYMO_MAJOR 1
#define KYMO_MINOR 1

#define KYMO_NAME_MAX 63           /* bytes of a publisher's name */
#define KYMO_SLOTS_MAX 65536
#define KYMO_CELLS_MAX 65536       /* cells of one slot */
#define KYMO_TEXT_MAX 65536        /* bytes of a command's text */
#define KYMO_TEXT_DEFAULT 1024
#define KYMO_SLOT_LABELS_MAX 8
#define KYMO_SLOT_LABEL_NAME_MAX 31
#define KYMO_SLOT_LABEL_MAX 63     /* bytes of a slot's label */
#define KYMO_METRIC_TEXT_MAX 1024  /* bytes of a metric's name, unit, help, and of each key and value of its labels */
#define KYMO_METRIC_LABELS_MAX 16
#define KYMO_METRICS_MAX (4u << 20) /* bytes of all descriptions of metrics */
#define KYMO_FILE_MAX (256u << 20)  /* bytes of a file */
/* Files of a user's ended programs that a folder keeps while none collects them; and those of the last 30 s, which a
 * collector may not have seen yet, up to so many. */
#define KYMO_ENDED_MAX 64
#define KYMO_ENDED_YOUNG_MAX 512
#define KYMO_ENDED_YOUNG_NS 30000000000u
#define KYMO_ENDED_REMOVED 16 /* files that go for each new one, at most: after a burst there are as few as before in a while */

/* ---- What is published -------------------------------------------------------------------------------------------------- */

/* What kind of text a command is. */
enum {
    KYMO_SQL = 1,   /* SQL: recorded without its literals */
    KYMO_PLAIN = 2, /* anything else: recorded up to its first blank */
    KYMO_SECRET = 3 /* not even copied into the file: only its length is */
};

/* What a slot is doing. */
enum {
    KYMO_NONE = 0,                        /* nothing was said yet */
    KYMO_IDLE = 1,                        /* waits for a command */
    KYMO_ACTIVE = 2,                      /* executes the text */
    KYMO_IDLE_IN_TRANSACTION = 3,         /* waits, in an open transaction */
    KYMO_IDLE_IN_ABORTED_TRANSACTION = 4, /* waits, in a failed transaction */
    KYMO_GONE = 5                         /* its process released the slot */
};

/* The clock of the start stamps, which are the program's own. */
enum {
    KYMO_STAMP_NONE = 0,      /* no stamps */
    KYMO_STAMP_REALTIME = 1,  /* nanoseconds since 1970-01-01 UTC */
    KYMO_STAMP_MONOTONIC = 2, /* nanoseconds of CLOCK_MONOTONIC */
    KYMO_STAMP_POSTGRES = 3   /* microseconds since 2000-01-01 UTC: PostgreSQL's TimestampTz */
};

enum { KYMO_COUNTER = 1, KYMO_GAUGE = 2, KYMO_HISTOGRAM = 3 };

/* How the bits of a cell are read. Counters and histograms are KYMO_U64. */
enum { KYMO_U64 = 0, KYMO_I64 = 1, KYMO_F64 = 2 };

/*
 * Buckets of a histogram: 2^sub_bits for each power of two from 2^min_exponent to 2^max_exponent, one below, one above.
 * sub_bits <= min_exponent < max_exponent <= 63, sub_bits <= 6.
 */
#define KYMO_BUCKETS(sub_bits, min_exponent, max_exponent) ((((max_exponent) - (min_exponent)) << (sub_bits)) + 2)
/* Its cells: samples, sum, then the buckets. */
#define KYMO_HISTOGRAM_CELLS(sub_bits, min_exponent, max_exponent) (2 + KYMO_BUCKETS(sub_bits, min_exponent, max_exponent))

typedef struct kymo_metric {
    const char *name;                                /* of a series, without the publisher's: "commands_total" */
    const char *unit;                                /* "seconds", "bytes", "" */
    const char *help;                                /* one sentence */
    const char *const *labels;                       /* key, value, key, value, ..., NULL; or NULL */
    double scale;                                    /* what a cell is multiplied with to be in `unit`; 0 is taken for 1 */
    uint8_t kind;                                    /* KYMO_COUNTER, KYMO_GAUGE, KYMO_HISTOGRAM */
    uint8_t type;                                    /* KYMO_U64, KYMO_I64, KYMO_F64 */
    uint8_t sub_bits, min_exponent, max_exponent;    /* of a histogram */
    /* Set by kymo_open and kymo_metric_add. Cells are given in the order of the metrics: one, or KYMO_HISTOGRAM_CELLS. */
    uint32_t cell;
    uint32_t cells;
} kymo_metric;

/* Who publishes; only tests say so themselves. */
typedef struct kymo_origin {
    uint32_t pid;
    uint64_t start; /* clock ticks from boot to the start of the process */
    uint8_t boot[16];
    uint8_t epoch[16];
    uint64_t created_ns;
} kymo_origin;

typedef struct kymo_config {
    const char *name;              /* of the program: "postgresql" */
    uint32_t slots;                /* most processes or threads that publish at the same time */
    uint32_t text_bytes;           /* of a command's text; 0: KYMO_TEXT_DEFAULT; rounded up to 8 */
    kymo_metric *metrics;
    size_t n_metrics;
    uint32_t spare_cells;          /* room for metrics that are added later: cells of a slot, */
    uint32_t spare_bytes;          /* and bytes of their descriptions */
    const char *const *slot_labels; /* names of the labels of a slot: "database", "user" */
    uint32_t n_slot_labels;
    uint32_t stamp_clock;          /* KYMO_STAMP_... */
    const char *folder;            /* NULL: $KYMO_DIR, /run/kymo/pub, /dev/shm/kymo-UID, the first that is there */
    const kymo_origin *origin;     /* NULL: this process */
} kymo_config;

/* A process's or thread's place in the file. All zero: it does nothing. */
typedef struct kymo_slot {
    uint64_t *cells;
    uint64_t *head;
    uint64_t *texts[2];
    uint64_t *identities[2];
    uint32_t text_bytes;
    uint32_t short_bytes; /* texts that are copied without a call */
    uint32_t n_labels;
    uint32_t index;
    struct kymo_publisher *publisher; /* NULL: nothing is published */
    uint64_t epoch;                   /* that of the publisher when the slot was taken: another one means that it is no more */
} kymo_slot;

/* An open file. All zero: it does nothing. */
typedef struct kymo_publisher {
    unsigned char *base; /* NULL: nothing is published */
    size_t length;
    uint64_t *live, *cells, *heads, *texts, *identities;
    unsigned char *metrics;
    uint64_t metrics_room;   /* bytes */
    uint32_t cells_used;     /* of a slot */
    uint32_t cells_room;
    uint32_t cell_words;     /* words from one slot's cells to the next one's */
    uint32_t text_bytes, text_words, identity_words, n_labels, n_slots;
    uint64_t epoch;          /* grows after fork and when the file is closed: slots of an epoch before do nothing */
    int lock;                /* of `fd` and `life`; held by who forks */
    int fd;                  /* of the file: to ask for the locks of others */
    uint32_t life;           /* the byte of the file that this process has locked; 0: none */
    void *life_page;         /* the mapping that holds the lock */
    dev_t device;            /* of the file */
    ino_t inode;
    ino_t pids;              /* the namespace of the pid of the process that made the file; 0: unknown */
    struct kymo_publisher *next;
    char path[320];
    char why[448];           /* why nothing is published */
} kymo_publisher;

/* ---- The hot path: no system call, no lock, no allocation, no clock ------------------------------------------------------ */

/* Words of a slot's head. */
enum {
    KYMO_HEAD_OWNER = 0,      /* pid, and times taken << 32 */
    KYMO_HEAD_GENERATION = 1, /* commands begun: the newest one is in buffer generation & 1 */
    KYMO_HEAD_STATE = 2,      /* state of that generation: generation << 8 | state */
    KYMO_HEAD_IDENTITY = 3,   /* the same for identities */
    KYMO_HEAD_TAKEN_AT = 4,   /* generation when the owner took the slot */
    KYMO_HEAD_START = 5,      /* start of the owner, in clock ticks from boot; 0: unknown */
    KYMO_HEAD_IDENTITY_AT = 6, /* generation of identities when the owner took the slot */
    KYMO_HEAD_LIFE = 7        /* the byte that the owner's process has locked (0: none), and times taken << 32: stored last */
};

/* Words of the live section. */
enum { KYMO_LIVE_METRICS = 0, KYMO_LIVE_SLOTS = 1, KYMO_LIVE_CLOSED = 2, KYMO_LIVE_LAST_LIFE = 3 };

/* However the program is optimized, a publish is to cost what it costs. */
#define KYMO_INLINE static inline __attribute__((always_inline))

#define KYMO_LOAD(word) __atomic_load_n((word), __ATOMIC_RELAXED)
#define KYMO_STORE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)

/* Tests stop the program here: between the text and the generation that makes it count. */
#ifndef KYMO_BEFORE_GENERATION
#define KYMO_BEFORE_GENERATION() ((void)0)
#endif

/* The last `rest` bytes of a text, 1 to 7, as a word. */
KYMO_INLINE uint64_t kymo_last_word(const char *text, size_t length, size_t rest) {
    const char *at = text + length - rest;
    uint64_t w = 0;
    unsigned shift = 0;
    if (length >= 8) { /* the last eight bytes, shifted */
        memcpy(&w, text + length - 8, 8);
        return w >> ((64 - 8 * length) & 63);
    }
    if (rest & 4) {
        uint32_t four;
        memcpy(&four, at, 4);
        w = four;
        at += 4;
        shift = 32;
    }
    if (rest & 2) {
        uint16_t two;
        memcpy(&two, at, 2);
        w |= (uint64_t)two << shift;
        at += 2;
        shift += 16;
    }
    if (rest & 1)
        w |= (uint64_t)(unsigned char)*at << shift;
    return w;
}

/* The last 0 to 31 bytes of a text, of which `length` bytes are stored, into `words`, where the text begins. */
KYMO_INLINE void kymo_copy_end(uint64_t *words, const char *text, size_t length) {
    size_t at = length & ~(size_t)31;
    uint64_t v, w;
    if (length & 16) {
        memcpy(&v, text + at, 8);
        memcpy(&w, text + at + 8, 8);
        KYMO_STORE(words + at / 8, v);
        KYMO_STORE(words + at / 8 + 1, w);
        at += 16;
    }
    if (length & 8) {
        memcpy(&v, text + at, 8);
        KYMO_STORE(words + at / 8, v);
        at += 8;
    }
    if (length & 7)
        KYMO_STORE(words + at / 8, kymo_last_word(text, length, length & 7));
}

#if defined(__x86_64__)
/* Whole 64 bytes. Two words by one instruction: each is stored whole. 1.3 instructions a word instead of 3. */
KYMO_INLINE void kymo_copy_lines(uint64_t *words, const char *text, size_t bytes) {
    unsigned char *const to = (unsigned char *)words + bytes;
    const char *const from = text + bytes;
    ptrdiff_t at = -(ptrdiff_t)bytes;
    for (; at != 0; at += 64)
        __asm__ volatile("movups (%1, %2), %%xmm0\n\tmovups 16(%1, %2), %%xmm1\n\t"
                         "movups 32(%1, %2), %%xmm2\n\tmovups 48(%1, %2), %%xmm3\n\t"
                         "movaps %%xmm0, (%0, %2)\n\tmovaps %%xmm1, 16(%0, %2)\n\t"
                         "movaps %%xmm2, 32(%0, %2)\n\tmovaps %%xmm3, 48(%0, %2)"
                         :
                         : "r"(to), "r"(from), "r"(at)
                         : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
}
#endif

/* Of any text, to words that are aligned to 32 bytes. Nothing behind `text + length` is read. */
static inline void kymo_copy_text(uint64_t *words, const char *text, size_t length) {
    uint64_t *to = words;
    const char *from = text;
    size_t fours = length / 32;
#if defined(__x86_64__)
    const size_t lines = length & ~(size_t)63;
    kymo_copy_lines(words, text, lines);
    from += lines;
    to += lines / 8;
    fours &= 1;
#endif
    for (; fours != 0; fours--, from += 32, to += 4) {
        uint64_t v0, v1, v2, v3;
        memcpy(&v0, from, 8);
        memcpy(&v1, from + 8, 8);
        memcpy(&v2, from + 16, 8);
        memcpy(&v3, from + 24, 8);
        KYMO_STORE(to, v0);
        KYMO_STORE(to + 1, v1);
        KYMO_STORE(to + 2, v2);
        KYMO_STORE(to + 3, v3);
    }
    kymo_copy_end(words, text, length);
}

/* Whether the slot publishes: not when it was never taken, was given back, is of the parent of this process, or of a closed file. */
KYMO_INLINE int kymo_is_on(const kymo_slot *slot) {
    return slot->publisher != NULL && KYMO_LOAD(&slot->publisher->epoch) == slot->epoch;
}

/* What every command has, but for its text. Then the text, and kymo_count. */
KYMO_INLINE uint64_t *kymo_fill(kymo_slot *slot, uint64_t generation, uint64_t lengths, uint32_t kind, uint64_t stamp, uint64_t query_id) {
    uint64_t *const buffer = slot->texts[generation & 1];
    /* Who sees a word of this version sees that the version before was published: a reader of the one before that tries again. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    KYMO_STORE(buffer, stamp);
    KYMO_STORE(buffer + 1, lengths);
    KYMO_STORE(buffer + 2, (uint64_t)kind | (uint64_t)KYMO_ACTIVE << 8);
    KYMO_STORE(buffer + 3, query_id);
    return buffer + 4;
}

/* The version counts. */
KYMO_INLINE void kymo_count(uint64_t *head, uint64_t generation) {
    KYMO_BEFORE_GENERATION();
    __atomic_store_n(head + KYMO_HEAD_GENERATION, generation, __ATOMIC_RELEASE);
}

/* kymo_begin for any text. */
static __attribute__((noinline, unused)) void kymo_begin_long(kymo_slot *slot, uint32_t kind, const char *text, size_t length, uint64_t stamp,
                                                              uint64_t query_id) {
    uint64_t *const head = slot->head;
    const uint64_t generation = KYMO_LOAD(head + KYMO_HEAD_GENERATION) + 1;
    const size_t stored = kind == KYMO_SECRET ? 0 : length <= slot->text_bytes ? length : slot->text_bytes;
    const uint64_t whole = length <= UINT32_MAX ? length : UINT32_MAX;
    kymo_copy_text(kymo_fill(slot, generation, stored | whole << 32, kind, stamp, query_id), text, stored);
    kymo_count(head, generation);
}

/*
 * A command begins: the slot is active with this text. `stamp` is the program's own, of the clock that the configuration names;
 * `query_id` is whatever names equal commands, or 0.
 */
KYMO_INLINE void kymo_begin(kymo_slot *slot, uint32_t kind, const char *text, size_t length, uint64_t stamp, uint64_t query_id) {
    uint64_t *const head = slot->head;
    uint64_t generation;
    if (!kymo_is_on(slot))
        return;
    if (length > slot->short_bytes || kind == KYMO_SECRET) {
        kymo_begin_long(slot, kind, text, length, stamp, query_id);
        return;
    }
    generation = KYMO_LOAD(head + KYMO_HEAD_GENERATION) + 1;
    kymo_copy_end(kymo_fill(slot, generation, (uint64_t)length | (uint64_t)length << 32, kind, stamp, query_id), text, length);
    kymo_count(head, generation);
}

/* The slot's state changes; the text stays, as that of the command that began last. */
KYMO_INLINE void kymo_state(kymo_slot *slot, uint32_t state) {
    uint64_t *const head = slot->head;
    if (!kymo_is_on(slot))
        return;
    __atomic_store_n(head + KYMO_HEAD_STATE, KYMO_LOAD(head + KYMO_HEAD_GENERATION) << 8 | state, __ATOMIC_RELEASE);
}

/* The command ends: the slot is idle. */
KYMO_INLINE void kymo_end(kymo_slot *slot) { kymo_state(slot, KYMO_IDLE); }

/* Adds to a cell of memory that kymo_cells gave: for programs that count many things at once, and look for NULL once. */
KYMO_INLINE void kymo_cell_add(uint64_t *cell, uint64_t amount) {
#if defined(__x86_64__)
    /* One instruction, which stores the word whole; gcc makes three of a relaxed load and store. */
    __asm__ volatile("addq %1, %0" : "+m"(*cell) : "er"(amount) : "cc");
#else
    KYMO_STORE(cell, KYMO_LOAD(cell) + amount);
#endif
}

/* The slot's cells, or NULL if nothing is published. */
KYMO_INLINE uint64_t *kymo_cells(const kymo_slot *slot) { return kymo_is_on(slot) ? slot->cells : NULL; }

/* A counter, or a gauge of whole numbers: `cell` is that of its metric. */
KYMO_INLINE void kymo_add(kymo_slot *slot, uint32_t cell, uint64_t amount) {
    if (kymo_is_on(slot))
        kymo_cell_add(slot->cells + cell, amount);
}

/* A gauge; or a counter that the program keeps itself and that never falls. */
KYMO_INLINE void kymo_set(kymo_slot *slot, uint32_t cell, uint64_t value) {
    if (kymo_is_on(slot))
        KYMO_STORE(slot->cells + cell, value);
}

/* A gauge of type KYMO_F64. */
KYMO_INLINE void kymo_set_double(kymo_slot *slot, uint32_t cell, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    kymo_set(slot, cell, bits);
}

/* The bucket of a value, from 0. */
KYMO_INLINE size_t kymo_bucket(uint64_t value, uint32_t sub_bits, uint32_t min_exponent, uint32_t max_exponent) {
    const uint64_t exponent = 63 ^ (uint64_t)__builtin_clzll(value | 1);
    if (__builtin_expect(exponent - min_exponent >= max_exponent - min_exponent, 0))
        return exponent < min_exponent ? 0 : (size_t)KYMO_BUCKETS(sub_bits, min_exponent, max_exponent) - 1;
    return (exponent << sub_bits) + (value >> (exponent - sub_bits)) + 1 - ((size_t)(min_exponent + 1) << sub_bits);
}

/* The same as kymo_observe, for memory that kymo_cells gave: `cells` is the histogram's first. */
KYMO_INLINE void kymo_cells_observe(uint64_t *cells, uint32_t sub_bits, uint32_t min_exponent, uint32_t max_exponent, uint64_t value,
                                      uint64_t weight) {
    kymo_cell_add(cells, 1);
    kymo_cell_add(cells + 1, value * weight);
    kymo_cell_add(cells + 2 + kymo_bucket(value, sub_bits, min_exponent, max_exponent), weight);
}

/* A value of a histogram. One that was chosen of 64 at random has the weight 64; one that stands for itself 1. */
KYMO_INLINE void kymo_observe(kymo_slot *slot, const kymo_metric *histogram, uint64_t value, uint64_t weight) {
    if (kymo_is_on(slot))
        kymo_cells_observe(slot->cells + histogram->cell, histogram->sub_bits, histogram->min_exponent, histogram->max_exponent,
                           value, weight);
}

/* ---- Once a process, or seldom ------------------------------------------------------------------------------------------- */

static inline void kymo_locked(kymo_publisher *publisher) {
    while (__atomic_exchange_n(&publisher->lock, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
}

static inline void kymo_unlocked(kymo_publisher *publisher) { __atomic_store_n(&publisher->lock, 0, __ATOMIC_RELEASE); }

/* Open publishers of this process, for the handlers of fork. Each translation unit has those that it opened. */
static kymo_publisher *kymo_publishers;
static int kymo_fork_handlers;

static inline void kymo_before_fork(void) {
    kymo_publisher *publisher;
    for (publisher = kymo_publishers; publisher != NULL; publisher = publisher->next)
        kymo_locked(publisher);
}

static inline void kymo_after_fork_in_parent(void) {
    kymo_publisher *publisher;
    for (publisher = kymo_publishers; publisher != NULL; publisher = publisher->next)
        kymo_unlocked(publisher);
}

/* Reads a small file whole; its length, or 0. */
static inline size_t kymo_read_small(const char *path, char *text, size_t room) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;
    if (fd < 0)
        return 0;
    n = read(fd, text, room - 1);
    close(fd);
    if (n < 0)
        n = 0;
    text[n] = '\0';
    return (size_t)n;
}

/* Start of a process, in clock ticks from boot: field 22 of its stat, which is at `path`; 0 if it cannot be read. */
static inline uint64_t kymo_start(const char *path) {
    char text[1024], *at;
    int field;
    if (kymo_read_small(path, text, sizeof text) == 0)
        return 0;
    at = strrchr(text, ')'); /* behind the program's name, which may contain anything, is field 3 */
    for (field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

static inline uint64_t kymo_own_start(void) { return kymo_start("/proc/self/stat"); }

/* The namespace in which this process has its pid; 0 if it cannot be known. */
static inline ino_t kymo_own_pids(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/* F_OFD_GETLK and F_OFD_SETLK, which the C library has with _GNU_SOURCE alone. */
enum { KYMO_GETLK = 36, KYMO_SETLK = 37 };

/* A lock of the open file on one byte: asked for or taken. The type that the kernel says, or -1. */
static inline int kymo_byte_lock(int fd, int command, short type, uint32_t byte) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)byte;
    lock.l_len = 1;
    return fcntl(fd, command, &lock) == 0 ? lock.l_type : -1;
}

/* Whether a descriptor is of the publisher's file: a program may have closed all that it had. */
static inline int kymo_is_file(const kymo_publisher *publisher, int fd) {
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == publisher->device && status.st_ino == publisher->inode;
}

/* Opens the publisher's file a second time; -1 where it cannot be reached any more. */
static inline int kymo_open_again(const kymo_publisher *publisher) {
    const int fd = open(publisher->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || kymo_is_file(publisher, fd))
        return fd;
    close(fd);
    return -1;
}

/*
 * Locks a byte of the file that is this process's own, so that all can see that it lives, in whatever namespace they are. A mapping
 * that children do not inherit holds the lock: no descriptor stays open, and the kernel gives the lock back when the process ends,
 * however it ends. For who holds publisher->lock.
 */
static inline void kymo_begin_life(kymo_publisher *publisher) {
    const int fd = publisher->life != 0 ? -1 : kymo_open_again(publisher);
    uint32_t byte;
    void *page;
    if (fd < 0)
        return;
    do
        byte = (uint32_t)__atomic_add_fetch(publisher->live + KYMO_LIVE_LAST_LIFE, 1, __ATOMIC_RELAXED);
    while (byte == 0);
    page = kymo_byte_lock(fd, KYMO_SETLK, F_WRLCK, byte) < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, 1, MADV_DONTFORK) != 0) {
        munmap(page, 1);
        return;
    }
    publisher->life = byte;
    publisher->life_page = page;
}

/* The child is a process of its own, with what the parent was allowed: later it may not open the file any more. */
static inline void kymo_after_fork_in_child(void) {
    const int error = errno;
    kymo_publisher *publisher;
    for (publisher = kymo_publishers; publisher != NULL; publisher = publisher->next) {
        KYMO_STORE(&publisher->epoch, publisher->epoch + 1);
        publisher->life = 0;
        publisher->life_page = NULL;
        kymo_begin_life(publisher);
        kymo_unlocked(publisher);
    }
    errno = error;
}

/* 32 hexadecimal digits, with or without dashes, as 16 bytes. */
static inline void kymo_from_hex(uint8_t *bytes, const char *text) {
    size_t digits = 0;
    for (; *text != '\0' && digits < 32; text++) {
        const char *const place = strchr("0123456789abcdef", *text);
        if (place == NULL)
            continue;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | (uint8_t)(place - "0123456789abcdef"));
        digits++;
    }
}

static inline int kymo_own_origin(kymo_origin *origin) {
    char boot[64];
    struct timespec now;
    memset(origin, 0, sizeof *origin);
    origin->pid = (uint32_t)getpid();
    origin->start = kymo_own_start();
    if (kymo_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) != 0)
        kymo_from_hex(origin->boot, boot);
    if (getrandom(origin->epoch, sizeof origin->epoch, 0) != (ssize_t)sizeof origin->epoch)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    origin->created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}

/* Sets why nothing is published. Always -1. */
static inline int kymo_refuse(kymo_publisher *publisher, const char *what, const char *object, const char *cause) {
    snprintf(publisher->why, sizeof publisher->why, "cannot %s %.200s: %s", what, object, cause);
    return -1;
}

/* The cause of a refusal by the system. A service or a container may see as read-only what others write. */
static inline const char *kymo_cause(int error) {
    return error == EROFS ? "it is read-only here; mount it read-write (ReadWritePaths= of a unit, a volume without ro), or set KYMO_DIR"
                          : strerror(error);
}

/*
 * The folder where files go: $KYMO_DIR (not in set-user-id programs), else /run/kymo/pub where it can be written, else
 * /dev/shm/kymo-UID, which is made if it is missing, and has to be this user's alone. Where /run/kymo/pub is read-only, a
 * file elsewhere would not be collected: nothing is published.
 */
static inline int kymo_folder(kymo_publisher *publisher, char *folder, size_t room) {
    const char *const chosen = getuid() == geteuid() && getgid() == getegid() ? getenv("KYMO_DIR") : NULL;
    struct stat status;
    if (chosen != NULL && chosen[0] != '\0') {
        if ((size_t)snprintf(folder, room, "%s", chosen) >= room)
            return kymo_refuse(publisher, "publish in", "$KYMO_DIR", "its name is too long");
        return 0;
    }
    snprintf(folder, room, "/run/kymo/pub");
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    if (errno == EROFS)
        return kymo_refuse(publisher, "publish in", folder, kymo_cause(errno));
    snprintf(folder, room, "/dev/shm/kymo-%lu", (unsigned long)geteuid());
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return kymo_refuse(publisher, "make folder", folder, kymo_cause(errno));
    if (lstat(folder, &status) != 0)
        return kymo_refuse(publisher, "look at folder", folder, strerror(errno));
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return kymo_refuse(publisher, "publish in", folder, "it is no folder of this user alone");
    return 0;
}

static inline size_t kymo_round(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

static inline void kymo_put16(unsigned char *at, size_t value) {
    const uint16_t word = (uint16_t)value;
    memcpy(at, &word, 2);
}

static inline void kymo_put32(unsigned char *at, size_t value) {
    const uint32_t word = (uint32_t)value;
    memcpy(at, &word, 4);
}

static inline void kymo_put64(unsigned char *at, uint64_t value) { memcpy(at, &value, 8); }

#define KYMO_HEADER_BYTES 1024
#define KYMO_SECTIONS_AT 512
#define KYMO_LIVE_BYTES 64
#define KYMO_HEAD_BYTES 64
#define KYMO_TEXT_FIXED 32
#define KYMO_IDENTITY_FIXED 32
#define KYMO_LABEL_BYTES 64
#define KYMO_METRIC_FIXED 40
#define KYMO_TMPFS_MAGIC 0x01021994

/* Cells of a metric; 0: it makes no sense. */
static inline uint32_t kymo_metric_cells(const kymo_metric *metric) {
    if (metric->kind == KYMO_COUNTER && metric->type == KYMO_U64)
        return 1;
    if (metric->kind == KYMO_GAUGE && metric->type <= KYMO_F64)
        return 1;
    if (metric->kind != KYMO_HISTOGRAM || metric->type != KYMO_U64 || metric->sub_bits > 6 || metric->sub_bits > metric->min_exponent ||
        metric->min_exponent >= metric->max_exponent || metric->max_exponent > 63)
        return 0;
    return (uint32_t)KYMO_HISTOGRAM_CELLS(metric->sub_bits, metric->min_exponent, metric->max_exponent);
}

static inline size_t kymo_text_or_empty(const char *text) { return text == NULL ? 0 : strlen(text); }

/* Bytes of a metric's description; 0: it makes no sense. */
static inline size_t kymo_metric_bytes(const kymo_metric *metric) {
    const size_t name = kymo_text_or_empty(metric->name), unit = kymo_text_or_empty(metric->unit), help = kymo_text_or_empty(metric->help);
    size_t bytes = KYMO_METRIC_FIXED + name + unit + help, n;
    if (name == 0 || name > KYMO_METRIC_TEXT_MAX || unit > KYMO_METRIC_TEXT_MAX || help > KYMO_METRIC_TEXT_MAX)
        return 0;
    for (n = 0; metric->labels != NULL && metric->labels[n] != NULL; n++) {
        const size_t length = strlen(metric->labels[n]);
        if (length > KYMO_METRIC_TEXT_MAX || n >= 2 * KYMO_METRIC_LABELS_MAX)
            return 0;
        bytes += 2 + length;
    }
    return n % 2 != 0 ? 0 : kymo_round(bytes, 8);
}

static inline unsigned char *kymo_put_bytes(unsigned char *at, const char *text, size_t length) {
    if (length != 0)
        memcpy(at, text, length);
    return at + length;
}

/* Appends the description of a metric, which has been checked, to the table. */
static inline void kymo_put_metric(kymo_publisher *publisher, kymo_metric *metric, size_t bytes) {
    const uint64_t used = KYMO_LOAD(publisher->live + KYMO_LIVE_METRICS);
    unsigned char *const record = publisher->metrics + used;
    const size_t name = strlen(metric->name), unit = kymo_text_or_empty(metric->unit), help = kymo_text_or_empty(metric->help);
    const double scale = metric->scale != 0 ? metric->scale : 1.0;
    unsigned char *at = record + KYMO_METRIC_FIXED, *labels;
    size_t n = 0;
    metric->cells = kymo_metric_cells(metric);
    metric->cell = publisher->cells_used;
    kymo_put32(record, bytes);
    kymo_put32(record + 4, KYMO_METRIC_FIXED);
    kymo_put32(record + 8, metric->cell);
    kymo_put32(record + 12, metric->cells);
    memcpy(record + 16, &scale, 8);
    record[24] = metric->kind;
    record[25] = metric->type;
    if (metric->kind == KYMO_HISTOGRAM) {
        record[26] = metric->sub_bits;
        record[27] = metric->min_exponent;
        record[28] = metric->max_exponent;
    }
    kymo_put16(record + 32, name);
    kymo_put16(record + 34, unit);
    kymo_put16(record + 36, help);
    at = kymo_put_bytes(at, metric->name, name);
    at = kymo_put_bytes(at, metric->unit, unit);
    at = kymo_put_bytes(at, metric->help, help);
    labels = at;
    for (; metric->labels != NULL && metric->labels[n] != NULL; n += 2) {
        const size_t key = strlen(metric->labels[n]), value = strlen(metric->labels[n + 1]);
        kymo_put16(at, key);
        kymo_put16(at + 2, value);
        at = kymo_put_bytes(at + 4, metric->labels[n], key);
        at = kymo_put_bytes(at, metric->labels[n + 1], value);
    }
    kymo_put16(record + 30, n / 2);
    kymo_put16(record + 38, (size_t)(at - labels));
    publisher->cells_used += metric->cells;
    __atomic_store_n(publisher->live + KYMO_LIVE_METRICS, used + bytes, __ATOMIC_RELEASE);
}

/*
 * A metric that was not known when the file was made; there is as much room as the configuration's spare_cells and spare_bytes.
 * For the process that opened the publisher, one thread at a time. 0, or -1: then `metric->cells` is 0, and it must not be used.
 */
static inline int kymo_metric_add(kymo_publisher *publisher, kymo_metric *metric) {
    const size_t bytes = kymo_metric_bytes(metric);
    const uint32_t cells = kymo_metric_cells(metric);
    metric->cells = 0;
    if (publisher->base == NULL || bytes == 0 || cells == 0 || cells > publisher->cells_room - publisher->cells_used ||
        bytes > publisher->metrics_room - KYMO_LOAD(publisher->live + KYMO_LIVE_METRICS))
        return -1;
    kymo_put_metric(publisher, metric, bytes);
    return 0;
}

/* Where the sections are. */
typedef struct kymo_layout {
    size_t cells, heads, texts, identities, metrics; /* offsets; the live section is KYMO_LIVE_BYTES before the cells */
    size_t cell_stride, text_stride, identity_stride;
    size_t metrics_room, length;
    uint32_t text_bytes, cells_room;
} kymo_layout;

static inline int kymo_lay_out(kymo_publisher *publisher, const kymo_config *config, kymo_layout *layout) {
    const char *const name = config->name != NULL ? config->name : "";
    size_t n, cells = config->spare_cells, described = config->spare_bytes;
    memset(layout, 0, sizeof *layout);
    if (name[0] == '\0' || strlen(name) > KYMO_NAME_MAX)
        return kymo_refuse(publisher, "publish as", name, "a name has 1 to 63 bytes");
    for (n = 0; n < config->n_metrics; n++) {
        const size_t bytes = kymo_metric_bytes(&config->metrics[n]), own = kymo_metric_cells(&config->metrics[n]);
        if (bytes == 0 || own == 0)
            return kymo_refuse(publisher, "publish metric", config->metrics[n].name ? config->metrics[n].name : "",
                               "its description makes no sense");
        described += bytes;
        cells += own;
    }
    for (n = 0; n < config->n_slot_labels && n < KYMO_SLOT_LABELS_MAX; n++)
        if (strlen(config->slot_labels[n]) > KYMO_SLOT_LABEL_NAME_MAX)
            return kymo_refuse(publisher, "publish label", config->slot_labels[n], "its name is longer than 31 bytes");
    if (config->slots == 0 || config->slots > KYMO_SLOTS_MAX || cells > KYMO_CELLS_MAX || config->text_bytes > KYMO_TEXT_MAX ||
        config->n_slot_labels > KYMO_SLOT_LABELS_MAX || described > KYMO_METRICS_MAX)
        return kymo_refuse(publisher, "publish as", name, "too many slots, cells, labels or bytes of text");
    layout->text_bytes = (uint32_t)kymo_round(config->text_bytes != 0 ? config->text_bytes : KYMO_TEXT_DEFAULT, 8);
    layout->cells_room = (uint32_t)cells;
    layout->cell_stride = kymo_round(cells * 8, 64);
    layout->text_stride = 2 * kymo_round(KYMO_TEXT_FIXED + layout->text_bytes, 64);
    layout->identity_stride = 2 * kymo_round(KYMO_IDENTITY_FIXED + (size_t)config->n_slot_labels * KYMO_LABEL_BYTES, 64);
    layout->cells = KYMO_HEADER_BYTES + KYMO_LIVE_BYTES;
    layout->heads = layout->cells + config->slots * layout->cell_stride;
    layout->texts = layout->heads + (size_t)config->slots * KYMO_HEAD_BYTES;
    layout->identities = layout->texts + config->slots * layout->text_stride;
    layout->metrics = layout->identities + config->slots * layout->identity_stride;
    layout->length = kymo_round(layout->metrics + described, 4096);
    layout->metrics_room = layout->length - layout->metrics;
    if (layout->metrics_room > KYMO_METRICS_MAX)
        layout->metrics_room = KYMO_METRICS_MAX;
    if (layout->length > KYMO_FILE_MAX)
        return kymo_refuse(publisher, "publish as", name, "the file would be larger than 256 MiB");
    return 0;
}

static inline void kymo_put_section(unsigned char *base, uint32_t kind, size_t record, size_t offset, size_t stride, size_t count) {
    unsigned char *const entry = base + KYMO_SECTIONS_AT + (kind - 1) * 32;
    kymo_put32(entry, kind);
    kymo_put32(entry + 4, record);
    kymo_put64(entry + 8, offset);
    kymo_put64(entry + 16, stride);
    kymo_put64(entry + 24, count);
}

/* Fills the header of a zeroed mapping. */
static inline void kymo_put_header(unsigned char *base, const kymo_config *config, const kymo_layout *layout, const kymo_origin *origin) {
    uint32_t n;
    kymo_put16(base + 8, KYMO_MAJOR);
    kymo_put16(base + 10, KYMO_MINOR);
    kymo_put32(base + 12, KYMO_HEADER_BYTES);
    kymo_put64(base + 16, layout->length);
    kymo_put32(base + 24, origin->pid);
    kymo_put64(base + 32, origin->start);
    memcpy(base + 40, origin->boot, 16);
    memcpy(base + 56, origin->epoch, 16);
    kymo_put64(base + 72, origin->created_ns);
    kymo_put32(base + 80, config->slots);
    kymo_put32(base + 84, layout->cells_room);
    kymo_put32(base + 88, layout->text_bytes);
    kymo_put32(base + 92, config->n_slot_labels);
    kymo_put32(base + 96, config->stamp_clock);
    kymo_put32(base + 100, 6);
    kymo_put32(base + 104, KYMO_LABEL_BYTES);
    memcpy(base + 128, config->name, strlen(config->name));
    for (n = 0; n < config->n_slot_labels; n++)
        memcpy(base + 192 + n * 32, config->slot_labels[n], strlen(config->slot_labels[n]));
    kymo_put_section(base, 1, KYMO_LIVE_BYTES, KYMO_HEADER_BYTES, KYMO_LIVE_BYTES, 1);
    kymo_put_section(base, 2, (size_t)layout->cells_room * 8, layout->cells, layout->cell_stride, config->slots);
    kymo_put_section(base, 3, KYMO_HEAD_BYTES, layout->heads, KYMO_HEAD_BYTES, config->slots);
    kymo_put_section(base, 4, KYMO_TEXT_FIXED, layout->texts, layout->text_stride, config->slots);
    kymo_put_section(base, 5, KYMO_IDENTITY_FIXED, layout->identities, layout->identity_stride, config->slots);
    kymo_put_section(base, 6, KYMO_METRIC_FIXED, layout->metrics, 0, layout->metrics_room);
    memcpy(base, "kymo-shm", 8);
}

/* Points the publisher at a mapping with this layout. */
static inline void kymo_point(kymo_publisher *publisher, unsigned char *base, const kymo_config *config, const kymo_layout *layout) {
    publisher->base = base;
    publisher->length = layout->length;
    publisher->live = (uint64_t *)(void *)(base + KYMO_HEADER_BYTES);
    publisher->cells = (uint64_t *)(void *)(base + layout->cells);
    publisher->heads = (uint64_t *)(void *)(base + layout->heads);
    publisher->texts = (uint64_t *)(void *)(base + layout->texts);
    publisher->identities = (uint64_t *)(void *)(base + layout->identities);
    publisher->metrics = base + layout->metrics;
    publisher->metrics_room = layout->metrics_room;
    publisher->cells_used = 0;
    publisher->cells_room = layout->cells_room;
    publisher->cell_words = (uint32_t)(layout->cell_stride / 8);
    publisher->text_bytes = layout->text_bytes;
    publisher->text_words = (uint32_t)(layout->text_stride / 16);
    publisher->identity_words = (uint32_t)(layout->identity_stride / 16);
    publisher->n_labels = config->n_slot_labels;
    publisher->n_slots = config->slots;
}

/* Makes the file under a name that readers pass over, allocates all of it, and maps it. The descriptor, or -1. */
static inline int kymo_make_file(kymo_publisher *publisher, int folder, const char *where, const char *name, size_t length, void **base) {
    struct statfs system;
    struct stat status;
    int fd, error;
    if (fstatfs(folder, &system) != 0 || system.f_type != KYMO_TMPFS_MAGIC)
        return kymo_refuse(publisher, "publish in", where, "it is not in memory (tmpfs)");
    fd = openat(folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return kymo_refuse(publisher, "make a file in", where, kymo_cause(errno));
    /* All of it now: a hole that a full file system cannot fill would be a SIGBUS later. */
    error = flock(fd, LOCK_EX | LOCK_NB) != 0 || fchmod(fd, 0640) != 0 || fstat(fd, &status) != 0 ? errno : posix_fallocate(fd, 0, (off_t)length);
    if (error == 0) {
        publisher->device = status.st_dev;
        publisher->inode = status.st_ino;
        *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = *base == MAP_FAILED ? errno : 0;
    }
    if (error == 0)
        return fd;
    unlinkat(folder, name, 0);
    close(fd);
    return kymo_refuse(publisher, "allocate a file in", where, strerror(error));
}

/* When the program of a file made it, if the file is this user's and the program has ended; else 0. */
static inline uint64_t kymo_ended(int folder, const char *name) {
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    uint64_t created = 0;
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() || flock(fd, LOCK_SH | LOCK_NB) != 0 ||
        pread(fd, &created, sizeof created, 72) != (ssize_t)sizeof created)
        created = 0;
    close(fd);
    return created;
}

/*
 * Removes the oldest file of this user's ended programs if there are more than a folder keeps: a program that is started again and again
 * must not fill the memory while none collects. Whether it did.
 */
static inline int kymo_remove_oldest(int folder) {
    const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const entries = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    char oldest[64] = "";
    uint64_t oldest_created = UINT64_MAX;
    unsigned ended = 0;
    struct timespec now;
    if (entries == NULL) {
        if (copy >= 0)
            close(copy);
        return 0;
    }
    while ((entry = readdir(entries)) != NULL) {
        uint64_t created;
        if (strncmp(entry->d_name, "kymo.", 5) != 0 || strlen(entry->d_name) != 37)
            continue;
        created = kymo_ended(folder, entry->d_name);
        ended += created != 0;
        if (created != 0 && created < oldest_created) {
            oldest_created = created;
            memcpy(oldest, entry->d_name, 38);
        }
    }
    closedir(entries);
    clock_gettime(CLOCK_REALTIME, &now);
    if (ended < KYMO_ENDED_MAX ||
        (ended < KYMO_ENDED_YOUNG_MAX && oldest_created >= (uint64_t)now.tv_sec * 1000000000u - KYMO_ENDED_YOUNG_NS))
        return 0;
    return unlinkat(folder, oldest, 0) == 0;
}

static inline void kymo_unmap(kymo_publisher *publisher) {
    if (publisher->life_page != NULL)
        munmap(publisher->life_page, 1);
    publisher->life = 0;
    publisher->life_page = NULL;
    if (kymo_is_file(publisher, publisher->fd))
        close(publisher->fd);
    munmap(publisher->base, publisher->length);
    publisher->base = NULL;
}

/* The path of the file, which stays right when the process changes its folder. */
static inline void kymo_set_path(kymo_publisher *publisher, const char *where, const char *name) {
    char *const path = publisher->path;
    const size_t folder = strlen(where), room = sizeof publisher->path - strlen(name) - 2;
    size_t at = 0;
    path[0] = '\0';
    if (where[0] != '/' && getcwd(path, room) != NULL && (at = strlen(path) + 1) + folder <= room)
        path[at - 1] = '/';
    else
        at = 0;
    memcpy(path + at, where, folder);
    path[at + folder] = '/';
    memcpy(path + at + folder + 1, name, strlen(name) + 1);
}

/* Makes the file of a publisher in an open folder: complete before it has its name. */
static inline int kymo_make(kymo_publisher *publisher, const kymo_config *config, const kymo_layout *layout, int folder, const char *where) {
    char name[64], hidden[72];
    kymo_origin own;
    const kymo_origin *const origin = config->origin != NULL ? config->origin : &own;
    void *base = NULL;
    size_t n;
    int fd, renamed;
    if (config->origin == NULL && kymo_own_origin(&own) != 0)
        return kymo_refuse(publisher, "publish in", where, "no random bytes");
    memcpy(name, "kymo.", 5);
    for (n = 0; n < 16; n++)
        snprintf(name + 5 + 2 * n, 3, "%02x", origin->epoch[n]);
    snprintf(hidden, sizeof hidden, "%s.new", name);
    fd = kymo_make_file(publisher, folder, where, hidden, layout->length, &base);
    if (fd < 0)
        return -1;
    kymo_point(publisher, (unsigned char *)base, config, layout);
    kymo_put_header(publisher->base, config, layout, origin);
    for (n = 0; n < config->n_metrics; n++)
        kymo_put_metric(publisher, &config->metrics[n], kymo_metric_bytes(&config->metrics[n]));
    /* The mapping holds the open file, and with it the lock, until the last process that inherited it has ended. */
    publisher->fd = fd;
    renamed = renameat(folder, hidden, folder, name);
    if (renamed != 0) {
        kymo_refuse(publisher, "name a file in", where, strerror(errno));
        unlinkat(folder, hidden, 0);
        kymo_unmap(publisher);
        return -1;
    }
    kymo_set_path(publisher, where, name);
    return 0;
}

/*
 * Makes the file and maps it. 0, or -1: then nothing is published, publisher->why says why, and all other functions do nothing.
 * `publisher` is zeroed memory that stays where it is; one that is open already stays as it is.
 */
static inline int kymo_open(kymo_publisher *publisher, const kymo_config *config) {
    char where[256];
    kymo_layout layout;
    const uint64_t epoch = publisher->epoch; /* slots of a file that was closed stay what they are: nothing */
    int folder, made, removed;
    if (publisher->base != NULL) /* after a crash of its other processes, say: it is open, and goes on */
        return 0;
    memset(publisher, 0, sizeof *publisher);
    publisher->epoch = epoch;
    if (kymo_lay_out(publisher, config, &layout) != 0)
        return -1;
    if (config->folder != NULL) {
        if ((size_t)snprintf(where, sizeof where, "%s", config->folder) >= sizeof where)
            return kymo_refuse(publisher, "publish in", config->folder, "its name is too long");
    } else if (kymo_folder(publisher, where, sizeof where) != 0) {
        return -1;
    }
    folder = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return kymo_refuse(publisher, "open folder", where, strerror(errno));
    for (removed = 0; removed < KYMO_ENDED_REMOVED && kymo_remove_oldest(folder); removed++)
        ;
    made = kymo_make(publisher, config, &layout, folder, where);
    close(folder);
    if (made != 0)
        return -1;
    if (!kymo_fork_handlers) {
        if (pthread_atfork(kymo_before_fork, kymo_after_fork_in_parent, kymo_after_fork_in_child) != 0) {
            unlink(publisher->path);
            kymo_unmap(publisher);
            return kymo_refuse(publisher, "publish in", where, "no handler for fork can be set");
        }
        kymo_fork_handlers = 1;
    }
    publisher->next = kymo_publishers;
    kymo_publishers = publisher;
    publisher->pids = kymo_own_pids();
    kymo_locked(publisher);
    kymo_begin_life(publisher);
    kymo_unlocked(publisher);
    return 0;
}

/* A gauge is of who has the slot: what the last owner left of it goes. */
static inline void kymo_clear_gauges(const kymo_publisher *publisher, uint64_t *cells) {
    const uint64_t used = __atomic_load_n(publisher->live + KYMO_LIVE_METRICS, __ATOMIC_ACQUIRE);
    uint64_t at = 0;
    while (at < used) {
        const unsigned char *const record = publisher->metrics + at;
        uint32_t bytes, cell;
        memcpy(&bytes, record, 4);
        memcpy(&cell, record + 8, 4);
        if (record[24] == KYMO_GAUGE)
            KYMO_STORE(cells + cell, 0);
        at += bytes;
    }
}

/* Points `slot` at the slot of this number, which this process has taken for the `taken`th time, and says whose it is. */
static inline void kymo_slot_point(kymo_publisher *publisher, kymo_slot *slot, uint32_t index, uint64_t taken) {
    uint64_t *const head = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8);
    uint64_t used = KYMO_LOAD(publisher->live + KYMO_LIVE_SLOTS);
    const uint64_t generation = KYMO_LOAD(head + KYMO_HEAD_GENERATION);
    slot->cells = publisher->cells + (size_t)index * publisher->cell_words;
    slot->head = head;
    slot->texts[0] = publisher->texts + (size_t)index * 2 * publisher->text_words;
    slot->texts[1] = slot->texts[0] + publisher->text_words;
    slot->identities[0] = publisher->identities + (size_t)index * 2 * publisher->identity_words;
    slot->identities[1] = slot->identities[0] + publisher->identity_words;
    slot->text_bytes = publisher->text_bytes;
    slot->short_bytes = publisher->text_bytes < 31 ? publisher->text_bytes : 31;
    slot->n_labels = publisher->n_labels;
    slot->index = index;
    slot->publisher = publisher;
    slot->epoch = publisher->epoch;
    kymo_clear_gauges(publisher, slot->cells);
    KYMO_STORE(head + KYMO_HEAD_START, kymo_own_start());
    KYMO_STORE(head + KYMO_HEAD_TAKEN_AT, generation);
    KYMO_STORE(head + KYMO_HEAD_IDENTITY_AT, KYMO_LOAD(head + KYMO_HEAD_IDENTITY));
    KYMO_STORE(head + KYMO_HEAD_STATE, generation << 8 | KYMO_NONE);
    __atomic_store_n(head + KYMO_HEAD_LIFE, taken << 32 | publisher->life, __ATOMIC_RELEASE);
    while (used <= index && !__atomic_compare_exchange_n(publisher->live + KYMO_LIVE_SLOTS, &used, (uint64_t)index + 1, 0, __ATOMIC_RELEASE,
                                                         __ATOMIC_RELAXED)) {
    }
}

/* The slot of this head is free. */
static inline void kymo_give_back(uint64_t *head) {
    KYMO_STORE(head + KYMO_HEAD_STATE, KYMO_LOAD(head + KYMO_HEAD_GENERATION) << 8 | KYMO_GONE);
    __atomic_store_n(head + KYMO_HEAD_OWNER, KYMO_LOAD(head + KYMO_HEAD_OWNER) >> 32 << 32, __ATOMIC_RELEASE);
}

/* Gives the slot back: when its process or thread ends. Its counters stay. */
static inline void kymo_slot_release(kymo_slot *slot) {
    if (kymo_is_on(slot))
        kymo_give_back(slot->head);
    memset(slot, 0, sizeof *slot);
}

/* A slot that was taken is given back first. */
static inline void kymo_slot_clear(kymo_publisher *publisher, kymo_slot *slot) {
    if (slot->publisher == publisher)
        kymo_slot_release(slot);
    memset(slot, 0, sizeof *slot);
}

static inline int kymo_slot_is_free(const kymo_publisher *publisher, uint32_t index) {
    return (uint32_t)KYMO_LOAD(publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8) + KYMO_HEAD_OWNER) == 0;
}

/* Takes the slot of this number from the owner that was seen there. 0, or -1: somebody else was quicker. */
static inline int kymo_slot_take_from(kymo_publisher *publisher, kymo_slot *slot, uint32_t index, uint64_t seen) {
    uint64_t *const owner = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8) + KYMO_HEAD_OWNER;
    const uint64_t taken = (uint32_t)((seen >> 32) + 1);
    if (!__atomic_compare_exchange_n(owner, &seen, taken << 32 | (uint32_t)getpid(), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return -1;
    kymo_locked(publisher);
    kymo_begin_life(publisher);
    kymo_unlocked(publisher);
    kymo_slot_point(publisher, slot, index, taken);
    return 0;
}

/* Before slots of others are looked at. */
static inline void kymo_check_file(kymo_publisher *publisher) {
    kymo_locked(publisher);
    if (!kymo_is_file(publisher, publisher->fd))
        publisher->fd = kymo_open_again(publisher);
    kymo_unlocked(publisher);
}

/*
 * Whether the process that was seen as the owner of a slot has ended: its lock says so. Where it could not lock its pid does, in the
 * namespace where it means something; the start of the process tells whether its pid is used again.
 */
static inline int kymo_owner_ended(const kymo_publisher *publisher, const uint64_t *head, uint64_t seen) {
    const uint64_t life = __atomic_load_n(head + KYMO_HEAD_LIFE, __ATOMIC_ACQUIRE), start = KYMO_LOAD(head + KYMO_HEAD_START);
    const int is_of_owner = life >> 32 == seen >> 32; /* else the owner is just taking the slot */
    const pid_t pid = (pid_t)(uint32_t)seen;
    char path[32];
    uint64_t found;
    if (is_of_owner && (uint32_t)life != 0)
        return kymo_byte_lock(publisher->fd, KYMO_GETLK, F_RDLCK, (uint32_t)life) == F_UNLCK;
    if (publisher->pids == 0 || publisher->pids != kymo_own_pids())
        return 0;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return 1;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    found = is_of_owner && start != 0 ? kymo_start(path) : 0;
    return found != 0 && found != start;
}

/*
 * Takes the slot of this number if it is free or its process has ended: for servers that number their workers themselves.
 * 0, or -1: then `slot` does nothing. Its counters go on where its last owner left them, and its gauges begin at 0.
 */
static inline int kymo_slot_take_at(kymo_publisher *publisher, kymo_slot *slot, uint32_t index) {
    const uint64_t *head;
    uint64_t seen;
    kymo_slot_clear(publisher, slot);
    if (publisher->base == NULL || index >= publisher->n_slots)
        return -1;
    kymo_check_file(publisher);
    head = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8);
    seen = __atomic_load_n(head + KYMO_HEAD_OWNER, __ATOMIC_ACQUIRE);
    if ((uint32_t)seen != 0 && !kymo_owner_ended(publisher, head, seen))
        return -1;
    return kymo_slot_take_from(publisher, slot, index, seen);
}

/* Takes a free slot, or else one whose process has ended. 0, or -1 when there is none: then `slot` does nothing. */
static inline int kymo_slot_take(kymo_publisher *publisher, kymo_slot *slot) {
    uint32_t index;
    kymo_slot_clear(publisher, slot);
    if (publisher->base == NULL)
        return -1;
    for (index = 0; index < publisher->n_slots; index++)
        if (kymo_slot_is_free(publisher, index) && kymo_slot_take_at(publisher, slot, index) == 0)
            return 0;
    for (index = 0; index < publisher->n_slots; index++)
        if (kymo_slot_take_at(publisher, slot, index) == 0)
            return 0;
    return -1;
}

/*
 * Gives back the slots of a process that has ended, for the master that waited for it; `pid` is as the process itself has it. 0: those
 * of all processes that are seen to have ended. Counters stay. How many slots they were. A process that lives keeps its slots.
 */
static inline uint32_t kymo_release_ended(kymo_publisher *publisher, pid_t pid) {
    uint32_t index, released = 0;
    if (publisher->base == NULL)
        return 0;
    kymo_check_file(publisher);
    for (index = 0; index < publisher->n_slots; index++) {
        const uint64_t *const head = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8);
        const uint64_t seen = __atomic_load_n(head + KYMO_HEAD_OWNER, __ATOMIC_ACQUIRE);
        /* The word of the master counts where there is no lock. */
        const int is_said = pid != 0 && KYMO_LOAD(head + KYMO_HEAD_LIFE) == seen >> 32 << 32;
        kymo_slot slot;
        if ((uint32_t)seen == 0 || (pid != 0 && (uint32_t)seen != (uint32_t)pid) ||
            !(is_said || kymo_owner_ended(publisher, head, seen)) || kymo_slot_take_from(publisher, &slot, index, seen) != 0)
            continue;
        kymo_slot_release(&slot);
        released++;
    }
    return released;
}

/*
 * Who works in this slot: process, the leader of a group of processes that work together (or 0), the start of its session by the
 * publisher's clock (or 0), and a value for each name in slot_labels (NULL: empty). Longer ones are cut off and marked.
 */
static inline void kymo_identify(kymo_slot *slot, uint32_t pid, uint32_t leader, uint64_t stamp, const char *const *labels) {
    uint64_t *const head = slot->head;
    uint64_t generation, *buffer;
    uint32_t n;
    size_t word;
    if (!kymo_is_on(slot))
        return;
    generation = KYMO_LOAD(head + KYMO_HEAD_IDENTITY) + 1;
    buffer = slot->identities[generation & 1];
    __atomic_thread_fence(__ATOMIC_RELEASE);
    KYMO_STORE(buffer, (uint64_t)pid | (uint64_t)leader << 32);
    KYMO_STORE(buffer + 1, stamp);
    for (n = 0; n < slot->n_labels; n++) {
        unsigned char field[KYMO_LABEL_BYTES];
        const char *const label = labels != NULL && labels[n] != NULL ? labels[n] : "";
        const size_t length = strlen(label), stored = length <= KYMO_SLOT_LABEL_MAX ? length : KYMO_SLOT_LABEL_MAX;
        memset(field, 0, sizeof field);
        field[0] = (unsigned char)(stored | (stored < length ? 0x80u : 0));
        memcpy(field + 1, label, stored);
        for (word = 0; word < KYMO_LABEL_BYTES / 8; word++) {
            uint64_t value;
            memcpy(&value, field + word * 8, 8);
            KYMO_STORE(buffer + KYMO_IDENTITY_FIXED / 8 + n * (KYMO_LABEL_BYTES / 8) + word, value);
        }
    }
    __atomic_store_n(head + KYMO_HEAD_IDENTITY, generation, __ATOMIC_RELEASE);
}

/*
 * Gives all slots back, of whichever process: for a server whose processes have all ended, and that starts new ones. Counters
 * stay. Slots that this process took do nothing from now on.
 */
static inline void kymo_release_all(kymo_publisher *publisher) {
    uint32_t index;
    if (publisher->base == NULL)
        return;
    KYMO_STORE(&publisher->epoch, publisher->epoch + 1);
    for (index = 0; index < publisher->n_slots; index++) {
        uint64_t *const head = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8);
        if (!kymo_slot_is_free(publisher, index))
            kymo_give_back(head);
    }
}

/*
 * Ends publishing for good; for the process that opened. The file stays, so that its last counts are read; who collects them
 * removes it.
 */
static inline void kymo_close(kymo_publisher *publisher) {
    kymo_publisher **link;
    uint32_t index;
    if (publisher->base == NULL)
        return;
    for (index = 0; index < publisher->n_slots; index++) {
        uint64_t *const head = publisher->heads + (size_t)index * (KYMO_HEAD_BYTES / 8);
        const uint64_t owner = KYMO_LOAD(head + KYMO_HEAD_OWNER);
        if ((uint32_t)owner == (uint32_t)getpid() && KYMO_LOAD(head + KYMO_HEAD_LIFE) == (owner >> 32 << 32 | publisher->life))
            kymo_give_back(head);
    }
    KYMO_STORE(&publisher->epoch, publisher->epoch + 1);
    __atomic_store_n(publisher->live + KYMO_LIVE_CLOSED, 1, __ATOMIC_RELEASE);
    for (link = &kymo_publishers; *link != NULL && *link != publisher; link = &(*link)->next) {
    }
    if (*link == publisher)
        *link = publisher->next;
    kymo_unmap(publisher);
}

#ifdef __cplusplus
}
#endif

#endif
