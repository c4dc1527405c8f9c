/* The registers of the built-in prose. */
#include "runner/builtin_prose.h"

#include <stdio.h>
#include <string.h>

#include "runner/builtin_sentence.h"

/* Sentences of a story that change nothing in the scene. */
static const char *const narrations[] = {
    "$S $i $d, for the $n $B $a. ",
    "$S $t $A and $t $h $n. ",
    "$S had never $o such $a $s. ",
    "$S thought of $K and $i. ",
    "$S knew that $c. ",
    "$S told $O that $c. ",
    "$S looked at $h $s, which were $a and $a. ",
    "$S, who had $o the $s of $P, $t $O. ",
    "$S asked $f why $N $B so $a. ",
    "$S wondered whether $O would $T the $n. ",
    "In the $n stood $A. ",
    "It was the $C day, and the $n was $a. ",
    "$N $W $a, and $S $t it $d. ",
    "Nobody but $Z $t the $n (it was $a, and $N $W near). ",
    "\"$_$c,\" said $O, \"and $c.\" ",
    "\"$_I $T the $n,\" said $S, \"because $c.\" ",
    "\"$_$Q told me, 'the $n is $a,' and I $t $m,\" said $S. ",
    "\"$_$O,\" said $S, \"do you $T the $s of $P?\" ",
    "\"$_never,\" said $S. ",
    "When $S $t the $n, $O $i. ",
    "$S $i until the $s $i. ",
    "$O had $o $m, but $S had not $o the $n. ",
    "If $N $I, $S would $J. ",
    "$S hurt $f with the $n and $i $d. ",
    "$S $t the $a $n, the $n and the $s. ",
    "$S $i, $i and $i again. ",
    "$S saw that $N $W $o, and $t $A. ",
    "$S kept $h $s in a $n by the $n. ",
    "$S would not $T $A, nor would $O. ",
    "$S and $O $i together, $a and $a as they were. ",
    "$S heard $A $J near the $n. ",
    "$S had to $T the $s of $O, which were $a. ",
    "$S dreamt of a $n as $a as a $n. ",
};

/* Where people are and what they hold changes here, and only as it could. */
static void story_move(struct scene *scene)
{
    static const char *const ways[] = {"$S walked to $Y. ", "$S went back to $Y. ", "$S rode to $Y with $O. ",
                                       "On the $C day $S came to $Y. "};
    struct person *who = &scene->people[scene->subject];
    int place = (int)writer_below(scene->writer, SCENE_PLACES - 1);
    who->place = scene->place = place >= who->place ? place + 1 : place;
    uint32_t way = writer_below(scene->writer, 4);
    if (way == 2)
        scene->people[scene->other].place = who->place;
    sentence_write(scene, ways[way]);
}

/* A thing for which holder and, if nobody holds it, place are these; false when there is none. */
static bool thing_find(struct scene *scene, int holder, int place)
{
    int start = (int)writer_below(scene->writer, (uint32_t)scene->thing_count);
    for (int i = 0; i < scene->thing_count; i++) {
        const struct thing *thing = &scene->things[scene->thing = (start + i) % scene->thing_count];
        if (thing->holder == holder && (holder != NOBODY || thing->place == place))
            return true;
    }
    return false;
}

static void story_hand_over(struct scene *scene)
{
    static const char *const ways[] = {"$S gave $X to $O. ", "$S lost $X to $O at cards. ", "$O bought $X from $Z. "};
    static const char *const nothing[] = {"$S had nothing to give. ", "$S carried nothing but $h $n. "};
    if (!thing_find(scene, scene->subject, 0)) {
        sentence_write(scene, TEMPLATE(scene, nothing));
        return;
    }
    scene->things[scene->thing].holder = scene->other;
    sentence_write(scene, TEMPLATE(scene, ways));
}

static void story_pick_up(struct scene *scene)
{
    scene->place = scene->people[scene->subject].place;
    if (thing_find(scene, NOBODY, scene->place)) {
        scene->things[scene->thing].holder = scene->subject;
        sentence_write(scene, "There, at $Y, $S found $X and kept it. ");
    } else if (thing_find(scene, scene->subject, 0)) {
        scene->things[scene->thing].holder = NOBODY;
        scene->things[scene->thing].place = scene->place;
        sentence_write(scene, "$S left $X at $Y. ");
    } else
        sentence_write(scene, "There was nothing for $m at $Y but $A. ");
}

/* What can only be written by who remembers. */
static void story_recall(struct scene *scene)
{
    static const char *const places[] = {"$S was still at $Y. ", "At $Y $S $t the $n. ",
                                         "\"Where are you?\" asked $O. \"At $Y,\" said $Z. "};
    const struct thing *thing =
        &scene->things[scene->thing = (int)writer_below(scene->writer, (uint32_t)scene->thing_count)];
    scene->place = scene->people[scene->subject].place;
    if (writer_chance(scene->writer, 40)) {
        sentence_write(scene, TEMPLATE(scene, places));
    } else if (thing->holder == NOBODY) {
        scene->place = thing->place;
        sentence_write(scene, "$X was where it had been left, at $Y. ");
    } else if (thing->holder == scene->subject) {
        sentence_write(scene, "$S still had $X. ");
    } else {
        scene->other = thing->holder;
        sentence_write(scene, "\"Who has $X?\" asked $S. \"I have it,\" said $O. ");
    }
}

static void story_count(struct scene *scene)
{
    unsigned had = writer_between(scene->writer, 5, 60), sold = writer_between(scene->writer, 1, had - 2);
    const char *noun = topic_word(&scene->topic, scene->writer, WORD_NOUN)->forms[FORM_PLURAL];
    sentence_write(scene, "$S had ");
    number_write(scene->writer, had);
    writer_format(scene->writer, " %s, sold ", noun);
    number_write(scene->writer, sold);
    writer_text(scene->writer, ", and so kept ");
    number_write(scene->writer, had - sold);
    writer_text(scene->writer, ". ");
}

static void story_sentence(struct scene *scene)
{
    static void (*const events[])(struct scene * scene) = {story_move,   story_hand_over, story_pick_up,
                                                           story_recall, story_recall,    story_count};
    if (writer_chance(scene->writer, 40))
        events[writer_below(scene->writer, 6)](scene);
    else
        story_line(scene, TEMPLATE(scene, narrations));
    if (writer_chance(scene->writer, 15))
        scene_turn(scene);
}

static void story_end(struct scene *scene)
{
    sentence_write(scene, "This is what became of them. ");
    for (scene->subject = 0; scene->subject < scene->people_count; scene->subject++) {
        scene->other = (scene->subject + 1) % scene->people_count;
        scene->named = false;
        scene->place = scene->people[scene->subject].place;
        sentence_write(scene, "$S stayed at $Y");
        for (scene->thing = 0; scene->thing < scene->thing_count; scene->thing++)
            if (scene->things[scene->thing].holder == scene->subject)
                template_write(scene, ", with $X");
        template_write(scene, ", and $h $n was $a. ");
    }
    writer_text(scene->writer, "\n");
}

static void story_write(struct scene *scene)
{
    unsigned chapters = writer_between(scene->writer, 2, 5);
    sentence_write(scene, "The $_$a $_$n of $P\n\n");
    for (unsigned chapter = 1; chapter <= chapters; chapter++) {
        writer_text(scene->writer, "Chapter ");
        number_write(scene->writer, chapter);
        sentence_write(scene, ". $_$a $_$s\n\n");
        for (uint32_t paragraphs = writer_between(scene->writer, 3, 7); paragraphs > 0; paragraphs--) {
            scene->named = false;
            scene_turn(scene);
            for (uint32_t sentences = writer_between(scene->writer, 4, 9); sentences > 0; sentences--)
                story_sentence(scene);
            writer_text(scene->writer, "\n\n");
        }
    }
    story_end(scene);
}

enum { REPORT_TERMS = 4, REPORT_ROWS = 5 };

struct report {
    struct scene *scene;
    char terms[REPORT_TERMS][WORD_SIZE], society[NAME_SIZE], initials[4];
    const struct word *counted[REPORT_ROWS];
    unsigned counts[REPORT_ROWS], section;
};

static void report_sentence(struct report *report)
{
    static const char *const findings[] = {
        "$N $B $a, and $N $B not. ",
        "$N $V $A. ",
        "$N $I when $N $I. ",
        "According to $Q, $c. ",
        "$N $H been $o by $A since the $C day. ",
        "Of $# $s, $< were $o. ",
        "It is often said that $c; at $P this is not so. ",
        "Where $N $B $a, $N $I $d. ",
        "$N, which $V $A, $B $o every $n. ",
        "Neither the $n nor the $n of $P is $a. ",
        "If $N $B $o, then $N $H to be $o as well. ",
    };
    struct writer *writer = report->scene->writer;
    const char *term = report->terms[writer_below(writer, REPORT_TERMS)];
    uint32_t row = writer_below(writer, REPORT_ROWS);
    switch (writer_below(writer, 10)) {
    case 0:
        writer_format(writer, "Each %s ", term);
        report->scene->plural = false;
        template_write(report->scene, "$V $A. ");
        break;
    case 1:
        writer_format(writer, "The %s of the %s ", report->counted[row]->forms[FORM_PLURAL], report->initials);
        report->scene->plural = true;
        template_write(report->scene, "$I $d. ");
        break;
    case 2:
        writer_text(writer, "The ");
        number_write(writer, report->counts[row]);
        writer_format(writer, " %s ", report->counted[row]->forms[FORM_PLURAL]);
        template_write(report->scene, "of section one were $o again. ");
        break;
    case 3:
        if (report->section > 1) {
            writer_text(writer, "As section ");
            number_write(writer, writer_between(writer, 1, report->section - 1));
            template_write(report->scene, " says, $c. ");
            break;
        } /* fallthrough */
    default: sentence_write(report->scene, TEMPLATE(report->scene, findings));
    }
}

static void report_table(struct report *report)
{
    struct writer *writer = report->scene->writer;
    unsigned sum = 0;
    sentence_write(report->scene, "The $s were counted on the $C day:\n\n");
    for (int i = 0; i < REPORT_ROWS; i++) {
        report->counted[i] = topic_word(&report->scene->topic, writer, WORD_NOUN);
        report->counts[i] = writer_between(writer, 2, 99);
        sum += report->counts[i];
        writer_format(writer, "  %s: %u (", report->counted[i]->forms[FORM_PLURAL], report->counts[i]);
        number_write(writer, report->counts[i]);
        writer_text(writer, ")\n");
    }
    writer_format(writer, "  in all: %u\n\n", sum);
}

static void report_definitions(struct report *report)
{
    struct writer *writer = report->scene->writer;
    writer_format(writer, "This report was written for the %s (%s). ", report->society, report->initials);
    for (int i = 0; i < REPORT_TERMS; i++) {
        name_make(writer, report->terms[i], 2);
        report->terms[i][0] = (char)(report->terms[i][0] - 'A' + 'a');
        sentence_write(report->scene, "$N $B called a ");
        writer_format(writer, "%s. ", report->terms[i]);
    }
    writer_text(writer, "\n\n");
}

static void report_write(struct scene *scene)
{
    static const char *const bodies[] = {"Council", "Society", "Office", "Union", "Guild"};
    struct writer *writer = scene->writer;
    struct report report = {.scene = scene};
    const char *place = scene->places[0], *body = TEMPLATE(scene, bodies);
    size_t length = strlen(place);
    snprintf(report.society, sizeof report.society, "%.*s %s", (int)(length < 40 ? length : 40), place, body);
    snprintf(report.initials, sizeof report.initials, "%c%c%c", place[0], strchr(place, ' ')[1], body[0]);
    sentence_write(scene, "Report on the $s of $P\n\n");
    report_definitions(&report);
    uint32_t sections = writer_between(writer, 5, 11);
    for (report.section = 1; report.section <= sections; report.section++) {
        writer_format(writer, "%u. ", report.section);
        sentence_write(scene, "$a $s\n\n");
        if (report.section == 1)
            report_table(&report);
        for (uint32_t paragraphs = writer_between(writer, 1, 3); paragraphs > 0; paragraphs--) {
            for (uint32_t sentences = writer_between(writer, 3, 7); sentences > 0; sentences--)
                report_sentence(&report);
            writer_text(writer, "\n\n");
        }
    }
}

/* Two people write to each other in turn: who signs is who was written to before. */
static void letters_write(struct scene *scene)
{
    static const char *const lines[] = {
        "I have $o the $n that you sent, and it is $a. ",
        "$_$Q $t me at $P, and we $i for a $n. ",
        "You ask about $K. ",
        "You will remember that $c. ",
        "I cannot $T the $n any more, nor can I $T $h $s. ",
        "$_my $n is $a again, and the $s $J all day. ",
        "Please $T $A for me, and do not $T $A. ",
        "I hope that $c. ",
        "$_we have had $# $s this year, and only $< the year before. ",
        "It is said here that $c, but I do not believe it. ",
        "Do you still $T $A? ",
        "Tell $Q that $c. ",
    };
    static const char *const ends[] = {"Yours $d,", "With $a wishes,", "Ever yours,", "Your $a friend,"};
    static const char *const months[] = {"January", "March", "April", "May", "June", "August", "October", "December"};
    struct writer *writer = scene->writer;
    int pair[2] = {scene->subject, scene->other};
    uint32_t month = writer_below(writer, 8);
    for (uint32_t letter = 0, count = writer_between(writer, 4, 9); letter < count; letter++) {
        const struct person *from = &scene->people[pair[letter % 2]], *to = &scene->people[pair[(letter + 1) % 2]];
        scene->subject = pair[letter % 2];
        scene->people[pair[0]].introduced = scene->people[pair[1]].introduced = true;
        template_write(scene, "The $C of ");
        writer_format(writer, "%s\n\nDear %s %s,\n\n", months[(month + letter) % 8], to->female ? "Miss" : "Mr",
                      to->surname);
        for (uint32_t paragraphs = writer_between(writer, 1, 4); paragraphs > 0; paragraphs--) {
            for (uint32_t sentences = writer_between(writer, 3, 7); sentences > 0; sentences--)
                sentence_write(scene, TEMPLATE(scene, lines));
            writer_text(writer, "\n\n");
        }
        sentence_write(scene, TEMPLATE(scene, ends));
        writer_format(writer, "\n%s %s\n\n", from->first, from->surname);
    }
}

enum { GUIDE_PARTS = 7 };

/* What a step takes is what the list at the start said. */
static void guide_write(struct scene *scene)
{
    static const char *const units[] = {"cups", "feet", "pounds", "rows", "baskets", "handfuls"};
    static const char *const steps[] = {
        "$T the $n until it is $a",
        "while the $n is still $a, $T $A",
        "wait until $N $I, then $T it",
        "$T and $T the $s, but $d",
        "if $N $B $a, go back to the step before",
        "do not $T $A here",
        "$T it with the $a $n",
        "keep the $a $s for later",
    };
    struct writer *writer = scene->writer;
    const struct word *parts[GUIDE_PARTS];
    const char *part_units[GUIDE_PARTS];
    unsigned amounts[GUIDE_PARTS];
    sentence_write(scene, "How to $T a $a $n\n\nYou need:\n\n");
    for (int i = 0; i < GUIDE_PARTS; i++) {
        parts[i] = topic_word(&scene->topic, writer, WORD_NOUN);
        part_units[i] = TEMPLATE(scene, units);
        amounts[i] = writer_between(writer, 2, 30);
        writer_text(writer, "- ");
        number_write(writer, amounts[i]);
        writer_format(writer, " %s of %s\n", part_units[i], parts[i]->forms[FORM_BASE]);
    }
    uint32_t count = writer_between(writer, 25, 70);
    for (uint32_t step = 1; step <= count; step++) {
        uint32_t part = writer_below(writer, GUIDE_PARTS);
        writer_text(writer, "\nStep ");
        number_write(writer, step);
        writer_text(writer, ": ");
        if (writer_chance(writer, 40)) {
            template_write(scene, "$T the ");
            number_write(writer, amounts[part]);
            writer_format(writer, " %s of %s", part_units[part], parts[part]->forms[FORM_BASE]);
            template_write(scene, " with the $n. ");
        } else {
            template_write(scene, TEMPLATE(scene, steps));
            writer_text(writer, ". ");
        }
        if (writer_chance(writer, 50))
            sentence_write(scene, "($c.)");
    }
    writer_text(writer, "\n");
}

static void play_speech(struct scene *scene)
{
    static const char *const lines[] = {
        "I have never $o $A. ",
        "$_$c. ",
        "Will you $T me, $O? ",
        "Who would $T the $n of $P? ",
        "$_no, $O, $c. ",
        "We $T $A here. ",
        "$_give me $K. ",
        "$_$N $I; $N $I too. ",
        "$_$Q is $a today. ",
        "I $t it, and it $i. ",
        "$_let us $J until $N $I. ",
        "$_the $n, the $n, always the $n! ",
    };
    struct writer *writer = scene->writer;
    for (const char *c = scene->people[scene->subject].surname; *c; c++)
        writer_byte(writer, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    writer_text(writer, ". ");
    for (uint32_t sentences = writer_between(writer, 1, 5); sentences > 0; sentences--)
        sentence_write(scene, TEMPLATE(scene, lines));
}

static void play_write(struct scene *scene)
{
    struct writer *writer = scene->writer;
    sentence_write(scene, "The $_$a $_$n, a play\n\nThe people:\n");
    for (int i = 0; i < scene->people_count; i++) {
        struct person *person = &scene->people[i];
        person->introduced = true;
        writer_format(writer, "  %s %s, %s\n", person->first, person->surname, person->trade);
    }
    for (uint32_t speech = 0, count = writer_between(writer, 25, 70); speech < count; speech++) {
        if (speech % 20 == 0) {
            writer_text(writer, speech ? "\n\nScene " : "\nScene ");
            number_write(writer, speech / 20 + 1);
            template_write(scene, ", at $P.\n");
        }
        writer_text(writer, "\n");
        int speaker = scene->subject;
        do
            scene_turn(scene);
        while (scene->subject == speaker);
        play_speech(scene);
        scene->plural = false;
        if (writer_chance(writer, 25))
            template_write(scene, "($Z picks up $h $n and $V it.)");
    }
    writer_text(writer, "\n");
}

void prose_write(struct writer *writer, const struct lexicon *lexicon)
{
    static void (*const registers[])(struct scene * scene) = {story_write,  story_write,   story_write, report_write,
                                                              report_write, letters_write, guide_write, play_write};
    struct scene scene;
    scene_init(&scene, lexicon, writer);
    registers[writer_below(writer, sizeof registers / sizeof *registers)](&scene);
}
