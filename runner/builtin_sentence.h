/* Sentences of the built-in prose, from templates in which a '$' and a letter stand for something of the scene:
 *
 *   people  $S subject, by name or pronoun   $O the other person, by name   $m him/her   $h his/her   $f
 * himself/herself $F full name with title and trade of the subject   $Z surname of the subject   $Q, $R names at random
 *   things  $X, $Y the thing and the place now spoken of   $K, $P any of the scene   $C the number of the day
 *           $# a number   $< a smaller one than that
 *   words   $n noun   $s plural   $a adjective   $d adverb   $t $i past (with and without object)   $T $J base
 *           $g with -ing, no object   $o participle
 *   clauses $N subject noun phrase; the next $V $I (present, with and without object) $B (is/are) $H (has/have)
 *           $W (was/were) agree with it   $A noun phrase as object   $c a whole clause in the present
 *   $_      the next letter is a capital
 *
 * Whoever the subject is has to be remembered: the gender of a surname is told once, where the person comes in. */
#ifndef RUNNER_BUILTIN_SENTENCE_H
#define RUNNER_BUILTIN_SENTENCE_H

#include "runner/builtin_words.h"

enum { SCENE_PEOPLE = 6, SCENE_THINGS = 8, SCENE_PLACES = 5, NOBODY = -1, NAME_SIZE = 64 };

struct person {
    char surname[WORD_SIZE];
    const char *first;
    const char *trade; /* "weaver" */
    bool female, introduced;
    int place;
};

struct thing {
    const struct word *adjective, *noun;
    int holder; /* person or NOBODY: it lies at place */
    int place;
};

struct scene {
    struct writer *writer;
    struct topic topic;
    struct person people[SCENE_PEOPLE];
    struct thing things[SCENE_THINGS];
    char places[SCENE_PLACES][NAME_SIZE];
    int people_count, thing_count;
    int subject, other, thing, place; /* now spoken of */
    bool named;                       /* the subject was named in this paragraph: a pronoun will do */
    bool comma;                       /* an apposition ended: a comma follows unless the template has a mark there */
    bool plural;
    unsigned day, number;
};

void scene_init(struct scene *scene, const struct lexicon *lexicon, struct writer *writer);

/* Another subject, another other. */
void scene_turn(struct scene *scene);

/* Writes a template; sentence_write() starts it with a capital. */
void template_write(struct scene *scene, const char *template);
void sentence_write(struct scene *scene, const char *template);

/* At times, when it starts with $S, with a few words before it that say when or how. */
void story_line(struct scene *scene, const char *template);

/* One of the rows. */
const char *template_draw(struct scene *scene, const char *const *templates, size_t count);
#define TEMPLATE(scene, rows) template_draw(scene, rows, sizeof(rows) / sizeof *(rows))

#endif
