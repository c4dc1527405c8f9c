/* Word lists, word building and inflection for the built-in text. */
#include "runner/builtin_words.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* Words of one class with a space between; "take/took/taken" are the forms of an irregular verb. */
static const char *const english[WORD_CLASSES] = {
    [WORD_NOUN] =
        "house river letter garden window table road bridge market stone lamp boat field village door mill book key "
        "clock kettle basket ladder wagon harbour tower orchard barrel lantern mirror blanket candle coat hammer "
        "needle rope bell bucket map coin ring stove chimney fence gate path hill valley forest meadow pond well "
        "shore island street corner square school church shop kitchen cellar attic roof wall floor chair bench "
        "drawer cupboard shelf box bottle cup plate bowl spoon knife button ribbon collar sleeve pocket glove hat "
        "boot saddle cart wheel engine pipe pump valve gauge switch wire cable meter scale ruler compass chart "
        "ledger record account invoice ticket stamp parcel message signal answer question reason rule order plan "
        "promise secret story song picture poem lesson number figure measure sum part piece row column line circle "
        "edge surface layer colour shade pattern sound voice whisper noise storm cloud shower shadow morning evening "
        "winter summer season harvest apple pear plum berry carrot onion turnip cabbage bean loaf cheese egg fish "
        "horse cow goat hen duck dog cat bird sparrow crow owl bee spider farmer baker miller carpenter tailor "
        "weaver potter smith sailor captain soldier guard clerk judge lawyer doctor nurse teacher pupil painter "
        "singer dancer player visitor stranger neighbour cousin brother sister uncle aunt friend widow merchant "
        "trader porter driver keeper hunter shepherd gardener cook servant master owner builder printer",
    [WORD_VERB] =
        "open close carry watch follow call help ask answer visit remember notice mention describe explain praise "
        "blame thank greet warn trust fear admire respect love hate need want use move lift push pull turn fill empty "
        "clean wash paint repair mend polish measure count weigh check test record copy print sign stamp order collect "
        "gather sort pack unload deliver receive return borrow lend/lent/lent sell/sold/sold buy/bought/bought "
        "find/found/found lose/lost/lost keep/kept/kept hold/held/held bring/brought/brought take/took/taken "
        "see/saw/seen hear/heard/heard make/made/made build/built/built draw/drew/drawn write/wrote/written "
        "know/knew/known choose/chose/chosen break/broke/broken hide/hid/hidden steal/stole/stolen leave/left/left "
        "feed/fed/fed lead/led/led meet/met/met cover protect defend attack reach cross pass touch press heat cool "
        "dry light/lit/lit inspect search study discuss examine compare replace remove attach fasten loosen tighten "
        "guide question ignore welcome refuse accept support punish reward surprise please worry trouble",
    [WORD_MOTION] =
        "walk wait work rest sleep/slept/slept laugh smile cough sigh whisper shout wonder worry listen talk "
        "argue agree travel return arrive depart stay linger wander hurry stumble climb jump dance sing/sang/sung "
        "stand/stood/stood sit/sat/sat kneel/knelt/knelt fall/fell/fallen rise/rose/risen grow/grew/grown burn melt "
        "fade vanish appear remain stop pause continue succeed fail tremble shiver blush complain rattle creak "
        "float drift sail row ride/rode/ridden swim/swam/swum fly/flew/flown weep/wept/wept",
    [WORD_ADJECTIVE] =
        "old new small large long short heavy light dark bright quiet loud warm cold dry wet clean dirty empty full "
        "broken strong weak soft hard smooth rough sharp dull thick thin wide narrow deep shallow high low early late "
        "quick slow careful careless clever foolish brave timid gentle fierce honest proud humble patient eager weary "
        "hungry thirsty sleepy lonely merry sad angry calm kind cruel rich poor plain fine rare common strange "
        "familiar distant near hidden open secret public grey red blue green yellow brown black white golden silver "
        "wooden iron copper stony grassy muddy dusty rusty sunny cloudy windy frozen faded painted polished crooked "
        "straight round square hollow solid ripe bitter sweet sour fresh stale simple difficult useful useless",
};

static const size_t word_counts[WORD_CLASSES] = {
    [WORD_NOUN] = 2400, [WORD_VERB] = 800, [WORD_MOTION] = 400, [WORD_ADJECTIVE] = 1200};

static const char *const female_names[] = {
    "Anna",  "Clara", "Edith", "Flora",  "Grace",  "Helen",  "Ida",    "Julia", "Laura", "Martha", "Nora",   "Olive",
    "Rose",  "Sarah", "Vera",  "Agnes",  "Bertha", "Cora",   "Dora",   "Ellen", "Fanny", "Hannah", "Irene",  "Judith",
    "Lydia", "Mabel", "Nancy", "Phoebe", "Ruth",   "Sophia", "Tamsin", "Una",   "Willa", "Zelda",  "Harriet"};
static const char *const male_names[] = {"Adam",   "Basil", "Colin",   "David",  "Edgar",  "Frank",  "George",
                                         "Henry",  "Isaac", "James",   "Karl",   "Luke",   "Mark",   "Noah",
                                         "Oscar",  "Peter", "Ralph",   "Simon",  "Thomas", "Victor", "Walter",
                                         "Alfred", "Bruno", "Conrad",  "Dennis", "Ernest", "Felix",  "Gilbert",
                                         "Hugh",   "Jacob", "Leonard", "Martin", "Nathan", "Owen",   "Philip"};

static const char *const onsets[] = {"b",  "br", "c",  "ch", "cl", "cr", "d", "dr", "f",  "fl", "fr", "g",
                                     "gl", "gr", "h",  "k",  "l",  "m",  "n", "p",  "pl", "pr", "r",  "s",
                                     "sh", "sl", "st", "t",  "tr", "th", "v", "w",  "sp", "sk", "y",  "j"};
static const char *const vowels[] = {"a", "e", "i", "o", "u", "a", "e", "i", "o", "a", "e", "ai", "ea", "oo"};
static const char *const codas[] = {"",   "",   "",   "n",  "r",  "l",  "m",  "nd", "nt", "st", "ck",
                                    "rn", "ld", "sh", "th", "ss", "mp", "rk", "t",  "p",  "d",  "lm"};
/* What makes a word of an English one: put before it and after it. Nouns of two nouns have nothing here. */
static const char *const prefixes[WORD_CLASSES][4] = {
    [WORD_NOUN] = {"", "", "", ""},
    [WORD_VERB] = {"re", "over", "un", "out"},
    [WORD_MOTION] = {"over", "out", "re", "by"},
    [WORD_ADJECTIVE] = {"un", "over", "half", "ever"},
};
static const char *const endings[WORD_CLASSES][6] = {
    [WORD_NOUN] = {"", "er", "ment", "ow", "et", "age"},
    [WORD_VERB] = {"", "ate", "ish", "en", "le", "er"},
    [WORD_MOTION] = {"", "er", "le", "", "ow", ""},
    [WORD_ADJECTIVE] = {"y", "ous", "al", "ive", "ful", "less"},
};
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* One draw an expression, here and everywhere: the order in which C evaluates arguments is not the same everywhere. */
static const char *draw(struct writer *writer, const char *const *choices, uint32_t count)
{
    return choices[writer_below(writer, count)];
}

static void syllables_make(struct writer *writer, char word[WORD_SIZE], int syllables)
{
    size_t used = 0;
    for (int i = 0; i < syllables; i++) {
        const char *onset = draw(writer, onsets, LENGTH(onsets));
        const char *vowel = draw(writer, vowels, LENGTH(vowels));
        const char *coda = i + 1 < syllables ? "" : draw(writer, codas, LENGTH(codas));
        used += (size_t)snprintf(word + used, WORD_SIZE - used, "%s%s%s", onset, vowel, coda);
    }
}

void name_make(struct writer *writer, char name[WORD_SIZE], int syllables)
{
    static const char *const ends[] = {"", "", "er", "ow", "ley", "ton", "man", "by", "ford", "wick", "ing", "ham"};
    syllables_make(writer, name, syllables);
    size_t length = strlen(name);
    snprintf(name + length, WORD_SIZE - length, "%s", draw(writer, ends, LENGTH(ends)));
    name[0] = (char)(name[0] - 'a' + 'A');
}

const char *first_name(struct writer *writer, bool female)
{
    return female ? draw(writer, female_names, LENGTH(female_names)) : draw(writer, male_names, LENGTH(male_names));
}

static bool is_vowel(char c)
{
    return c && strchr("aeiou", c);
}

/* base + ending with the spelling English wants: cry/cries/cried, bake/baked/baking, watch/watches. */
static void inflect(char out[WORD_SIZE], const char *base, const char *ending)
{
    size_t length = strlen(base);
    char last = base[length - 1], before = length > 1 ? base[length - 2] : 'a';
    bool sibilant = last == 's' || last == 'x' || last == 'z' || (last == 'h' && (before == 'c' || before == 's'));
    bool y = last == 'y' && !is_vowel(before);
    if (strcmp(ending, "s") == 0)
        snprintf(out, WORD_SIZE, "%.*s%s", (int)(length - y), base, y ? "ies" : sibilant ? "es" : "s");
    else if (strcmp(ending, "ed") == 0)
        snprintf(out, WORD_SIZE, "%.*s%s", (int)(length - y), base, y ? "ied" : last == 'e' ? "d" : "ed");
    else if (strcmp(ending, "ing") == 0)
        snprintf(out, WORD_SIZE, "%.*sing", (int)(length - (last == 'e' && before != 'e')), base);
    else if (last == 'e' && before == 'l') /* simple, simply */
        snprintf(out, WORD_SIZE, "%.*sy", (int)(length - 1), base);
    else
        snprintf(out, WORD_SIZE, "%.*s%s", (int)(length - y), base, y ? "ily" : "ly");
}

/* One vowel and then one consonant at the end: the consonant is doubled before -ed and -ing (stop, stopped). */
static void base_doubled(char out[WORD_SIZE], const char *base)
{
    size_t length = strlen(base), vowel_count = 0;
    for (size_t i = 0; i < length; i++)
        vowel_count += is_vowel(base[i]);
    bool doubles =
        vowel_count == 1 && length > 2 && is_vowel(base[length - 2]) && !strchr("aeiouwxy", base[length - 1]);
    snprintf(out, WORD_SIZE, "%s%.1s", base, doubles ? base + length - 1 : "");
}

static void word_make(struct word *word, enum word_class class, const char *base, const char *past, const char *done)
{
    char doubled[WORD_SIZE];
    base_doubled(doubled, base);
    snprintf(word->forms[FORM_BASE], WORD_SIZE, "%s", base);
    inflect(word->forms[FORM_S], base, class == WORD_ADJECTIVE ? "ly" : "s");
    inflect(word->forms[FORM_ING], doubled, "ing");
    inflect(word->forms[FORM_PAST], doubled, "ed");
    snprintf(word->forms[FORM_DONE], WORD_SIZE, "%s", word->forms[FORM_PAST]);
    if (*past) {
        snprintf(word->forms[FORM_PAST], WORD_SIZE, "%s", past);
        snprintf(word->forms[FORM_DONE], WORD_SIZE, "%s", done);
    }
}

/* The next word of a list, its parts between slashes cut apart. */
static const char *word_next(const char *list, char parts[3][WORD_SIZE])
{
    memset(parts, 0, 3 * sizeof *parts);
    for (size_t part = 0, used = 0; *list && *list != ' '; list++) {
        if (*list == '/') {
            part++;
            used = 0;
        } else
            parts[part][used++] = *list;
    }
    return *list ? list + 1 : list;
}

/* "lamphouse", "repainted", "unripe": of the English words, which come first, with all their forms. */
static void word_derive(const struct word *words, size_t count, enum word_class class, struct writer *writer,
                        struct word *word)
{
    const char *prefix = draw(writer, prefixes[class], 4);
    const char *first = class == WORD_NOUN ? words[writer_below(writer, (uint32_t)count)].forms[FORM_BASE] : prefix;
    const struct word *second = &words[writer_below(writer, (uint32_t)count)];
    char text[WORD_SIZE];
    for (int form = 0; form < WORD_FORMS; form++) {
        snprintf(text, sizeof text, "%.9s%.13s", first, second->forms[form]);
        memcpy(word->forms[form], text, sizeof text);
    }
}

static void word_invent(enum word_class class, struct writer *writer, char word[WORD_SIZE])
{
    char stem[WORD_SIZE];
    int syllables = writer_chance(writer, 70) ? 1 : 2;
    syllables_make(writer, stem, syllables);
    const char *ending = endings[class][writer_below(writer, 6)];
    snprintf(word, WORD_SIZE, "%.10s%s", stem, ending);
}

static void list_init(struct word_list *list, enum word_class class, struct writer *writer)
{
    size_t count = word_counts[class], used = 0;
    char parts[3][WORD_SIZE];
    list->words = memory_alloc(count, sizeof *list->words);
    zipf_init(&list->zipf, count);
    for (const char *rest = english[class]; *rest; used++) {
        rest = word_next(rest, parts);
        word_make(&list->words[used], class, parts[0], parts[1], parts[2]);
    }
    for (size_t first = used; used < count; used++) {
        if (writer_chance(writer, 55)) {
            word_derive(list->words, first, class, writer, &list->words[used]);
            continue;
        }
        char word[WORD_SIZE];
        word_invent(class, writer, word);
        word_make(&list->words[used], class, word, "", "");
    }
}

void lexicon_init(struct lexicon *lexicon)
{
    struct writer writer;
    writer_start(&writer, "words", 0);
    for (int class = 0; class < WORD_CLASSES; class ++)
        list_init(&lexicon->lists[class], (enum word_class) class, &writer);
    zipf_init(&lexicon->topic, TOPIC_WORDS);
    memory_free(writer.bytes);
}

void lexicon_release(struct lexicon *lexicon)
{
    for (int class = 0; class < WORD_CLASSES; class ++) {
        memory_free(lexicon->lists[class].words);
        zipf_release(&lexicon->lists[class].zipf);
    }
    zipf_release(&lexicon->topic);
}

void topic_init(struct topic *topic, const struct lexicon *lexicon, struct writer *writer)
{
    topic->lexicon = lexicon;
    for (int class = 0; class < WORD_CLASSES; class ++)
        for (int i = 0; i < TOPIC_WORDS; i++) {
            const struct word_list *list = &lexicon->lists[class];
            size_t index =
                i % 4 == 3 ? writer_below(writer, (uint32_t)list->zipf.count) : zipf_draw(&list->zipf, writer);
            topic->words[class][i] = &list->words[index];
        }
}

const struct word *topic_word(const struct topic *topic, struct writer *writer, enum word_class class)
{
    if (writer_chance(writer, 45))
        return topic->words[class][zipf_draw(&topic->lexicon->topic, writer)];
    const struct word_list *list = &topic->lexicon->lists[class];
    return &list->words[zipf_draw(&list->zipf, writer)];
}

static const char *const units[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const unit_ordinals[] = {"zeroth",    "first",     "second",      "third",      "fourth",
                                            "fifth",     "sixth",     "seventh",     "eighth",     "ninth",
                                            "tenth",     "eleventh",  "twelfth",     "thirteenth", "fourteenth",
                                            "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
static const char *const tens[] = {"", "", "twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet"};

void number_write(struct writer *writer, unsigned number)
{
    if (number >= 100) {
        writer_format(writer, "%s hundred", units[number / 100 % 10]);
        number %= 100;
        if (number == 0)
            return;
        writer_text(writer, " and ");
    }
    if (number < 20)
        writer_text(writer, units[number]);
    else if (number % 10 == 0)
        writer_format(writer, "%sy", tens[number / 10]);
    else
        writer_format(writer, "%sy-%s", tens[number / 10], units[number % 10]);
}

void ordinal_write(struct writer *writer, unsigned number)
{
    if (number < 20)
        writer_text(writer, unit_ordinals[number]);
    else if (number % 10 == 0)
        writer_format(writer, "%sieth", tens[number / 10 % 10]);
    else
        writer_format(writer, "%sy-%s", tens[number / 10 % 10], unit_ordinals[number % 10]);
}
