/* Templates to sentences, with agreement. */
#include "runner/builtin_sentence.h"

#include <stdio.h>
#include <string.h>

static const struct word *word_draw(struct scene *scene, enum word_class class)
{
    return topic_word(&scene->topic, scene->writer, class);
}

static void word_write(struct scene *scene, enum word_class class, int form)
{
    writer_text(scene->writer, word_draw(scene, class)->forms[form]);
}

const char *template_draw(struct scene *scene, const char *const *templates, size_t count)
{
    return templates[writer_below(scene->writer, (uint32_t)count)];
}

static const char *const trades[] = {"baker",  "miller",  "carpenter", "tailor",   "weaver",   "potter",  "smith",
                                     "sailor", "captain", "guard",     "clerk",    "judge",    "lawyer",  "doctor",
                                     "nurse",  "teacher", "painter",   "singer",   "merchant", "porter",  "driver",
                                     "keeper", "hunter",  "shepherd",  "gardener", "cook",     "builder", "printer",
                                     "farmer", "glazier", "cooper",    "ferryman"};

static void scene_people(struct scene *scene)
{
    struct writer *writer = scene->writer;
    scene->people_count = (int)writer_between(writer, 3, SCENE_PEOPLE);
    for (int i = 0; i < scene->people_count; i++) {
        struct person *person = &scene->people[i];
        person->female = writer_chance(writer, 50);
        person->first = first_name(writer, person->female);
        name_make(writer, person->surname, writer_chance(writer, 60) ? 1 : 2);
        person->trade = TEMPLATE(scene, trades);
        person->place = (int)writer_below(writer, SCENE_PLACES);
    }
}

void scene_init(struct scene *scene, const struct lexicon *lexicon, struct writer *writer)
{
    static const char *const kinds[] = {"Mill", "Bridge", "House", "Hall", "Farm", "Inn", "Quay", "Green", "Hill"};
    memset(scene, 0, sizeof *scene);
    scene->writer = writer;
    scene->day = writer_between(writer, 1, 60);
    topic_init(&scene->topic, lexicon, writer);
    for (int i = 0; i < SCENE_PLACES; i++) {
        char name[WORD_SIZE];
        name_make(writer, name, 1);
        snprintf(scene->places[i], NAME_SIZE, "%s %s", name, kinds[writer_below(writer, 9)]);
    }
    scene_people(scene);
    scene->thing_count = (int)writer_between(writer, 4, SCENE_THINGS);
    for (int i = 0; i < scene->thing_count; i++) {
        struct thing *thing = &scene->things[i];
        thing->adjective = word_draw(scene, WORD_ADJECTIVE);
        thing->noun = word_draw(scene, WORD_NOUN);
        thing->place = (int)writer_below(writer, SCENE_PLACES);
        thing->holder = writer_chance(writer, 50) ? (int)writer_below(writer, (uint32_t)scene->people_count) : NOBODY;
    }
    scene->subject = NOBODY;
    scene_turn(scene);
}

void scene_turn(struct scene *scene)
{
    uint32_t count = (uint32_t)scene->people_count;
    int before = scene->subject;
    scene->subject = (int)writer_below(scene->writer, count);
    scene->other = (int)(((uint32_t)scene->subject + 1 + writer_below(scene->writer, count - 1)) % count);
    scene->named = scene->named && scene->subject == before;
}

/* "Miss Nora Brandow, the weaver": and from then on only "Brandow" and "she". */
static void person_introduce(struct scene *scene, int person)
{
    struct person *who = &scene->people[person];
    const char *title = who->female ? "Miss" : "Mr";
    who->introduced = true;
    writer_format(scene->writer, "%s %s %s, the %s", title, who->first, who->surname, who->trade);
}

static void person_name(struct scene *scene, int person)
{
    if (!scene->people[person].introduced) {
        person_introduce(scene, person);
        scene->comma = true;
    } else
        writer_text(scene->writer, scene->people[person].surname);
}

static void subject_write(struct scene *scene)
{
    if (scene->named && writer_chance(scene->writer, 75)) {
        writer_text(scene->writer, scene->people[scene->subject].female ? "she" : "he");
        return;
    }
    person_name(scene, scene->subject);
    scene->named = true;
}

static void thing_write(const struct scene *scene, int thing)
{
    writer_format(scene->writer, "the %s %s", scene->things[thing].adjective->forms[FORM_BASE],
                  scene->things[thing].noun->forms[FORM_BASE]);
}

static void article_write(struct scene *scene, const char *word)
{
    writer_text(scene->writer, strchr("aeiou", word[0]) ? "an " : "a ");
}

/* Which singular nouns and plural ones can stand after. */
static const char *const singular_starts[] = {"the ", "the ", "the ", "", "this ", "every ", "one ", "that "};
static const char *const plural_starts[] = {"the ", "the ", "some ", "many ", "all the ", "these ", "few ", "both "};
static const char *const prepositions[] = {"near", "behind", "under", "beside", "above", "from", "with", "without"};

static void noun_phrase(struct scene *scene, int depth, bool *plural);

/* Present tense of the words that agree with a noun phrase of that number. */
static void verb_agree(struct scene *scene, enum word_class class, bool plural)
{
    word_write(scene, class, plural ? FORM_BASE : FORM_S);
}

/* "that the old baker sees", "that see the door": depth more levels may open inside. */
static void relative_clause(struct scene *scene, int depth, bool plural)
{
    bool inner;
    writer_text(scene->writer, " that ");
    switch (writer_below(scene->writer, 3)) {
    case 0: verb_agree(scene, WORD_MOTION, plural); break;
    case 1:
        verb_agree(scene, WORD_VERB, plural);
        writer_byte(scene->writer, ' ');
        noun_phrase(scene, depth - 1, &inner);
        break;
    default:
        noun_phrase(scene, depth - 1, &inner);
        writer_byte(scene->writer, ' ');
        verb_agree(scene, WORD_VERB, inner);
    }
}

static void noun_phrase(struct scene *scene, int depth, bool *plural)
{
    struct writer *writer = scene->writer;
    bool inner;
    *plural = writer_chance(writer, 40);
    const char *start = *plural ? TEMPLATE(scene, plural_starts) : TEMPLATE(scene, singular_starts);
    const struct word *adjective = writer_chance(writer, 40) ? word_draw(scene, WORD_ADJECTIVE) : NULL;
    const struct word *noun = word_draw(scene, WORD_NOUN);
    if (*start)
        writer_text(writer, start);
    else
        article_write(scene, (adjective ? adjective : noun)->forms[FORM_BASE]);
    if (adjective)
        writer_format(writer, "%s ", adjective->forms[FORM_BASE]);
    writer_text(writer, noun->forms[*plural ? FORM_PLURAL : FORM_BASE]);
    if (depth > 0 && writer_chance(writer, 22)) {
        writer_format(writer, " %s ", TEMPLATE(scene, prepositions));
        noun_phrase(scene, depth - 1, &inner);
    }
    if (depth > 0 && writer_chance(writer, 22))
        relative_clause(scene, depth, *plural);
}

static const char *const modals[] = {" will ", " can ", " must ", " may ", " could not ", " never "};

static void clause_write(struct scene *scene)
{
    struct writer *writer = scene->writer;
    bool plural, inner, transitive = writer_chance(writer, 50);
    enum word_class class = transitive ? WORD_VERB : WORD_MOTION;
    noun_phrase(scene, 2, &plural);
    if (writer_chance(writer, 30)) {
        uint32_t modal = writer_below(writer, 6);
        writer_text(writer, modals[modal]);
        if (modal < 5)
            word_write(scene, class, FORM_BASE);
        else
            verb_agree(scene, class, plural);
    } else {
        writer_byte(writer, ' ');
        verb_agree(scene, class, plural);
    }
    if (transitive) {
        writer_byte(writer, ' ');
        noun_phrase(scene, 1, &inner);
    } else if (writer_chance(writer, 40)) {
        writer_byte(writer, ' ');
        word_write(scene, WORD_ADJECTIVE, FORM_ADVERB);
    }
}

static void person_slot(struct scene *scene, char slot)
{
    const struct person *subject = &scene->people[scene->subject];
    uint32_t count = (uint32_t)scene->people_count;
    switch (slot) {
    case 'S': subject_write(scene); break;
    case 'O': person_name(scene, scene->other); break;
    case 'm': writer_text(scene->writer, subject->female ? "her" : "him"); break;
    case 'h': writer_text(scene->writer, subject->female ? "her" : "his"); break;
    case 'f': writer_text(scene->writer, subject->female ? "herself" : "himself"); break;
    case 'F': person_introduce(scene, scene->subject); break;
    case 'Z': writer_text(scene->writer, subject->surname); break;
    default: person_name(scene, (int)writer_below(scene->writer, count));
    }
}

static void clause_slot(struct scene *scene, char slot)
{
    bool inner;
    switch (slot) {
    case 'N': noun_phrase(scene, 2, &scene->plural); break;
    case 'A': noun_phrase(scene, 1, &inner); break;
    case 'V': verb_agree(scene, WORD_VERB, scene->plural); break;
    case 'I': verb_agree(scene, WORD_MOTION, scene->plural); break;
    case 'B': writer_text(scene->writer, scene->plural ? "are" : "is"); break;
    case 'H': writer_text(scene->writer, scene->plural ? "have" : "has"); break;
    case 'W': writer_text(scene->writer, scene->plural ? "were" : "was"); break;
    case 'c': clause_write(scene); break;
    case 'K': thing_write(scene, (int)writer_below(scene->writer, (uint32_t)scene->thing_count)); break;
    case 'P': writer_text(scene->writer, scene->places[writer_below(scene->writer, SCENE_PLACES)]); break;
    case 'X': thing_write(scene, scene->thing); break;
    case 'Y': writer_text(scene->writer, scene->places[scene->place]); break;
    case 'C': ordinal_write(scene->writer, scene->day++ % 99 + 1); break;
    case '#': number_write(scene->writer, scene->number = writer_between(scene->writer, 3, 60)); break;
    case '<': number_write(scene->writer, writer_between(scene->writer, 1, scene->number - 1)); break;
    default: scene->writer->capital = true;
    }
}

/* Slots that are one form of a word of one class. */
static const struct word_slot {
    char slot;
    enum word_class class;
    int form;
} word_slots[] = {
    {'n', WORD_NOUN, FORM_BASE},        {'s', WORD_NOUN, FORM_PLURAL}, {'a', WORD_ADJECTIVE, FORM_BASE},
    {'d', WORD_ADJECTIVE, FORM_ADVERB}, {'t', WORD_VERB, FORM_PAST},   {'i', WORD_MOTION, FORM_PAST},
    {'T', WORD_VERB, FORM_BASE},        {'J', WORD_MOTION, FORM_BASE}, {'g', WORD_MOTION, FORM_ING},
    {'o', WORD_VERB, FORM_DONE},
};

static void slot_write(struct scene *scene, char slot)
{
    for (size_t i = 0; i < sizeof word_slots / sizeof *word_slots; i++)
        if (word_slots[i].slot == slot) {
            word_write(scene, word_slots[i].class, word_slots[i].form);
            return;
        }
    if (strchr("SOmhfFZQR", slot))
        person_slot(scene, slot);
    else
        clause_slot(scene, slot);
}

void template_write(struct scene *scene, const char *template)
{
    for (const char *c = template; *c; c++) {
        if (scene->comma && !strchr(",.;?!:", *c))
            writer_byte(scene->writer, ',');
        scene->comma = false;
        if (*c == '$' && c[1])
            slot_write(scene, *++c);
        else
            writer_byte(scene->writer, *c);
    }
}

void story_line(struct scene *scene, const char *template)
{
    static const char *const openings[] = {"In the end ",    "After the $n, ", "Before the $s $i, ",
                                           "Once more ",     "For a while ",   "By the $n, ",
                                           "As $N $I, ",     "$d, ",           "Then, ",
                                           "Without a $n, ", "At noon ",       "Late that $n, ",
                                           "Like $A, ",      "Yet ",           "And so ",
                                           "With $h $n, ",   "Near $A, ",      "Still $a, ",
                                           "Because $c, ",   "Only "};
    if (template[1] == 'S' && writer_chance(scene->writer, 35))
        sentence_write(scene, TEMPLATE(scene, openings));
    else
        scene->writer->capital = true;
    template_write(scene, template);
}

void sentence_write(struct scene *scene, const char *template)
{
    scene->writer->capital = true;
    template_write(scene, template);
}
