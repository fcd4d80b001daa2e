/*
 * The second form of the entries in per_thread.def. It marks the call and goes on to the first form with the arguments as they
 * are, so it need not know them: three instructions, which differ between machines.
 */
#include "core.h"

__thread int cs_per_thread_next __attribute__((tls_model("initial-exec"), visibility("hidden"), used));

#if defined(__x86_64__) && defined(__ELF__)

/* rax holds no argument. */
#define P(symbol, suffix)                                                                                                        \
    __asm__(".pushsection .text\n"                                                                                               \
            ".globl " #symbol "_" #suffix "\n"                                                                                   \
            ".type " #symbol "_" #suffix ", @function\n" #symbol "_" #suffix ":\n"                                               \
            "    endbr64\n"                                                                                                      \
            "    movq cs_per_thread_next@gottpoff(%rip), %rax\n"                                                                 \
            "    movl $1, %fs:(%rax)\n"                                                                                          \
            "    jmp " #symbol "@PLT\n"                                                                                          \
            ".size " #symbol "_" #suffix ", . - " #symbol "_" #suffix "\n"                                                       \
            ".popsection\n");
#include "per_thread.def"
#undef P

#define P(symbol, suffix) extern CS_EXPORT void symbol##_##suffix(void);
#include "per_thread.def"
#undef P

void (*const cs_per_thread_table[CS_ENTRIES])(void) = {
#define P(symbol, suffix) [ENTRY_##symbol] = symbol##_##suffix,
#include "per_thread.def"
#undef P
};

#else

/* Flag 2 finds the first form. */
void (*const cs_per_thread_table[CS_ENTRIES])(void) = {0};

#endif
