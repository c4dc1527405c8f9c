/* Words for a shell. */
#include <criterion/criterion.h>

#include "core/memory.h"
#include "runner/shell_word.h"

static void assert_word(const char *text, const char *expected)
{
    char *word = shell_word(text);
    cr_expect_str_eq(word, expected);
    memory_free(word);
}

Test(shell_word, a_word_that_a_shell_reads_as_it_is_has_no_quotes)
{
    assert_word("results/day-2_b.db", "results/day-2_b.db");
    assert_word("training.steps=4,5", "training.steps=4,5");
}

Test(shell_word, what_a_shell_would_read_otherwise_is_between_single_quotes)
{
    assert_word("", "''");
    assert_word("my results/a.db", "'my results/a.db'");
    assert_word("$(rm -rf x); `y` \"z\" *\n", "'$(rm -rf x); `y` \"z\" *\n'");
    assert_word("~", "'~'");
    assert_word("\xc3\xa4", "'\xc3\xa4'");
}

Test(shell_word, a_single_quote_stands_outside_of_quotes_by_itself)
{
    assert_word("it's", "'it'\\''s'");
    assert_word("'", "''\\'''");
}
