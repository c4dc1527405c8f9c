/* A sweep becomes rows, and the sets of runs that its name had before stay reachable.
 *
 * An experiment's members add up: more seeds, other variants, a part of the file (--only). When one (variant, seed) now
 * means another key although the old run was begun, the file was changed: the whole earlier set is copied to "NAME@1"
 * and the experiment starts afresh. Plans that never began leave no trace. */
#include "runner/freeze.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/hash.h"
#include "runner/json.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/summary.h"

struct freeze {
    sqlite3 *db;
    const struct sweep *sweep;
    const struct experiment *experiment;
    int64_t id;   /* of the experiment's row */
    bool changed; /* the file's text is not what was frozen before */
    char fingerprint[HASH_TEXT_SIZE];
};

static char *changes_json(const struct variant *variant)
{
    json_t *changes = json_array();
    for (size_t i = 0; i < variant->override_count; i++) {
        json_t *change = json_array();
        json_push(change, json_from_text(variant->overrides[i].name));
        json_push(change, json_from_text(variant->overrides[i].value));
        json_push(changes, change);
    }
    char *text = json_format(changes, JSON_LINE, false);
    json_decref(changes);
    return text;
}

static void hash_field(struct hash *hash, const char *text)
{
    hash_add(hash, text, strlen(text) + 1);
}

/* Of everything that freeze_write() stores under the experiment's name. */
static void fingerprint_make(const struct sweep *sweep, char hex[HASH_TEXT_SIZE])
{
    const struct experiment *e = sweep->experiment;
    char numbers[128];
    struct hash hash;
    hash_init(&hash);
    hash_field(&hash, e->path);
    hash_field(&hash, e->description);
    hash_field(&hash, e->question);
    hash_field(&hash, e->text);
    hash_field(&hash, e->compare.metric);
    hash_field(&hash, e->compare.split);
    snprintf(numbers, sizeof numbers, "%.17g %.17g", e->compare.margin, e->compare.alpha);
    hash_field(&hash, numbers);
    for (size_t i = 0; i < e->variant_count; i++) {
        char *changes = changes_json(&e->variants[i]);
        hash_field(&hash, e->variants[i].label);
        hash_field(&hash, e->variants[i].baseline ? "baseline" : "");
        hash_field(&hash, changes);
        memory_free(changes);
    }
    for (size_t i = 0; i < sweep->run_count; i++) {
        snprintf(numbers, sizeof numbers, "%zu %" PRId64, sweep->runs[i].variant, sweep->runs[i].seed);
        hash_field(&hash, numbers);
        hash_field(&hash, sweep->runs[i].key);
    }
    hash_end(&hash, hex);
}

bool freeze_is_current(sqlite3 *db, const struct sweep *sweep)
{
    char fingerprint[HASH_TEXT_SIZE];
    int64_t same = 0;
    fingerprint_make(sweep, fingerprint);
    return sql_integer(db, &same, 0, "select 1 from experiment where name = ? and fingerprint = ?", "tt", NULL,
                       sweep->experiment->name, fingerprint) &&
           same;
}

/* ---- what names no experiment ---- */

static bool tokenizers_write(const struct freeze *f, struct error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < f->sweep->dataset_count; i++) {
        const struct dataset *d = &f->sweep->datasets[i];
        ok = sql_run(f->db, "insert into tokenizer (hash, image) values (?, ?) on conflict (hash) do nothing", "tb",
                     err, d->tokenizer_hash, d->tokenizer_image, d->tokenizer_image_size);
    }
    return ok;
}

/* Only what differs from the default. */
static bool settings_write(const struct freeze *f, const struct run *run, int64_t id, struct error *err)
{
    const struct config *config = &f->experiment->variants[run->variant].config;
    static const char sql[] = "insert into setting (run, knob, value) values (?, ?, ?)";
    bool ok = true;
    for (size_t i = 0; ok && i < knob_count; i++) {
        const struct knob *knob = &knobs[i];
        union knob_value value = knob_get(knob, config);
        char text[KNOB_TEXT_SIZE];
        if (knob_equal(knob, value, knob->standard))
            continue;
        switch (knob->kind) {
        case KNOB_INTEGER: ok = sql_run(f->db, sql, "iti", err, id, knob->name, value.integer); break;
        case KNOB_NUMBER: ok = sql_run(f->db, sql, "itd", err, id, knob->name, value.number); break;
        case KNOB_BOOLEAN: ok = sql_run(f->db, sql, "iti", err, id, knob->name, (int64_t)value.boolean); break;
        case KNOB_CHOICE: ok = sql_run(f->db, sql, "itt", err, id, knob->name, knob_format(knob, value, text)); break;
        }
    }
    return ok;
}

static bool run_write(const struct freeze *f, const struct run *run, struct error *err)
{
    const struct config *config = &f->experiment->variants[run->variant].config;
    const struct dataset *dataset = &f->sweep->datasets[run->dataset];
    int64_t known;
    if (!sql_integer(f->db, &known, 0, "select 1 from run where key = ?", "t", err, run->key))
        return false;
    if (known)
        return true;
    return sql_run(f->db,
                   "insert into run (key, seed, state, steps, tokens_per_step, parameters, flops_per_token, tokenizer, "
                   "corpus_hash, floor, config, created_at) values (?, ?, 'queued', ?, ?, ?, ?, "
                   "(select id from tokenizer where hash = ?), ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))",
                   "tiiiidttdt", err, run->key, run->seed, config->training.steps,
                   config->training.batch_size * config->model.context_length, run->parameters, run->flops_per_token,
                   dataset->tokenizer_hash, dataset->corpus_hash, dataset->floor, run->config_json) &&
           settings_write(f, run, sqlite3_last_insert_rowid(f->db), err);
}

/* The sweep as a table, so that sets can be compared in SQL. */
static bool planned_write(const struct freeze *f, struct error *err)
{
    bool ok = sql_script(f->db,
                         "create temp table if not exists planned (label text, seed integer, key text, "
                         "primary key (label, seed)); delete from temp.planned",
                         err);
    for (size_t i = 0; ok && i < f->sweep->run_count; i++) {
        const struct run *run = &f->sweep->runs[i];
        ok = run_write(f, run, err) && sql_run(f->db, "insert into temp.planned values (?, ?, ?)", "tit", err,
                                               f->experiment->variants[run->variant].label, run->seed, run->key);
    }
    return ok;
}

/* ---- an earlier set ---- */

/* Members of experiment ?1 that were begun. */
#define BEGUN                                                                                                          \
    "from variant v join member m on m.variant = v.id join run r on r.id = m.run "                                     \
    "where v.experiment = ?1 and r.state <> 'queued'"

/* A (variant, seed) that was begun and now means another key. */
static bool set_conflicts(const struct freeze *f, bool *conflicts, struct error *err)
{
    int64_t found;
    bool ok = sql_integer(f->db, &found, 0,
                          "select 1 " BEGUN " and exists (select 1 from temp.planned p where p.label = v.label and "
                          "p.seed = m.seed and p.key <> r.key)",
                          "i", err, f->id);
    *conflicts = found;
    return ok;
}

/* An earlier copy that has all of what was begun serves again. */
static bool archive_exists(const struct freeze *f, bool *exists, struct error *err)
{
    char pattern[512];
    int64_t found;
    snprintf(pattern, sizeof pattern, "%s@*", f->experiment->name);
    bool ok = sql_integer(f->db, &found, 0,
                          "select 1 from experiment a where a.archived and a.name glob ?2 and not exists ("
                          "select v.label, m.seed, m.run " BEGUN " except "
                          "select w.label, n.seed, n.run from variant w join member n on n.variant = w.id "
                          "where w.experiment = a.id)",
                          "it", err, f->id, pattern);
    *exists = found;
    return ok;
}

/* The first NAME@k that is free. */
static bool archive_name(const struct freeze *f, char *name, size_t size, struct error *err)
{
    int64_t taken = 1;
    for (int k = 1; taken; k++) {
        snprintf(name, size, "%s@%d", f->experiment->name, k);
        if (!sql_integer(f->db, &taken, 0, "select 1 from experiment where name = ?", "t", err, name))
            return false;
    }
    return true;
}

static bool archive_write(const struct freeze *f, const char *name, struct error *err)
{
    int64_t copy;
    return sql_run(f->db,
                   "insert into experiment (name, archived, path, description, question, file, metric, split, margin, "
                   "alpha, fingerprint, frozen_at, choices) select ?2, 1, path, description, question, file, metric, "
                   "split, margin, alpha, '', frozen_at, choices from experiment where id = ?1",
                   "it", err, f->id, name) &&
           sql_integer(f->db, &copy, 0, "select id from experiment where name = ?", "t", err, name) &&
           sql_run(f->db,
                   "insert into variant (experiment, label, position, baseline, changes) select ?2, label, position, "
                   "baseline, changes from variant where experiment = ?1 and id in (select v.id " BEGUN ")",
                   "ii", err, f->id, copy) &&
           sql_run(f->db,
                   "insert into member select w.id, m.seed, m.run from variant v join member m on m.variant = v.id "
                   "join run r on r.id = m.run join variant w on w.experiment = ?2 and w.label = v.label "
                   "where v.experiment = ?1 and r.state <> 'queued'",
                   "ii", err, f->id, copy) &&
           summary_refresh(f->db, copy, err);
}

static bool members_delete(const struct freeze *f, struct error *err)
{
    return sql_run(f->db, "delete from member where variant in (select id from variant where experiment = ?)", "i", err,
                   f->id) &&
           sql_run(f->db, query_text(QUERY_DELETE_LOSSES), "i", err, f->id) &&
           sql_run(f->db, query_text(QUERY_DELETE_COMPARISONS), "i", err, f->id) &&
           sql_run(f->db, "delete from variant where experiment = ?", "i", err, f->id);
}

static bool earlier_set_keep(const struct freeze *f, void (*note)(void *context, const char *text), void *context,
                             struct error *err)
{
    char name[512], text[1200];
    bool conflicts, exists;
    if (!set_conflicts(f, &conflicts, err))
        return false;
    if (!conflicts)
        return true;
    if (!archive_exists(f, &exists, err))
        return false;
    if (!exists) {
        if (!archive_name(f, name, sizeof name, err) || !archive_write(f, name, err))
            return false;
        snprintf(text, sizeof text, "%s was changed since it last ran: its earlier runs stay as %s",
                 f->experiment->name, name);
        if (note)
            note(context, text);
    }
    return members_delete(f, err);
}

/* Plans that never began and are not in the file any more, and runs that the file now calls otherwise. */
static bool stale_delete(const struct freeze *f, struct error *err)
{
    return sql_run(f->db,
                   "delete from member where (variant, seed) in ("
                   "select m.variant, m.seed from variant v join member m on m.variant = v.id "
                   "join run r on r.id = m.run where v.experiment = ?1 and "
                   "not exists (select 1 from temp.planned p where p.label = v.label and p.seed = m.seed) and "
                   "(r.state = 'queued' and ?2 or not exists (select 1 from temp.planned p where p.label = v.label) "
                   "and exists (select 1 from temp.planned p where p.key = r.key)))",
                   "ii", err, f->id, (int64_t)f->changed) &&
           sql_script(f->db,
                      "create temp table if not exists empty_variant (id integer primary key);"
                      "delete from temp.empty_variant;"
                      "insert into temp.empty_variant select id from main.variant v where not exists "
                      "(select 1 from main.member m where m.variant = v.id);"
                      "delete from main.loss_summary where variant in (select id from temp.empty_variant);"
                      "delete from main.comparison_summary where variant in (select id from temp.empty_variant);"
                      "delete from main.variant where id in (select id from temp.empty_variant)",
                      err);
}

/* ---- the experiment ---- */

static bool experiment_find(struct freeze *f, struct error *err)
{
    int64_t same;
    bool ok =
        sql_integer(f->db, &f->id, 0, "select id from experiment where name = ?", "t", err, f->experiment->name) &&
        sql_integer(f->db, &same, 1, "select file = ? from experiment where id = ?", "ti", err, f->experiment->text,
                    f->id);
    f->changed = ok && !same;
    return ok;
}

static bool experiment_write(struct freeze *f, struct error *err)
{
    const struct experiment *e = f->experiment;
    return sql_run(f->db,
                   "insert into experiment (name, path, description, question, file, metric, split, margin, alpha, "
                   "fingerprint, frozen_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', "
                   "'now')) on conflict (name) do update set path = excluded.path, description = excluded.description, "
                   "question = excluded.question, file = excluded.file, metric = excluded.metric, "
                   "split = excluded.split, margin = excluded.margin, alpha = excluded.alpha, "
                   "fingerprint = excluded.fingerprint, frozen_at = excluded.frozen_at",
                   "tttttttddt", err, e->name, e->path, e->description, e->question, e->text, e->compare.metric,
                   e->compare.split, e->compare.margin, e->compare.alpha, f->fingerprint) &&
           sql_integer(f->db, &f->id, 0, "select id from experiment where name = ?", "t", err, e->name);
}

/* Positions follow the file; a part of it (--only) leaves the others' order alone. */
static bool variants_write(const struct freeze *f, struct error *err)
{
    int64_t others, position = 0;
    bool ok = sql_integer(f->db, &others, 0,
                          "select count(*) from variant v where experiment = ? and not exists "
                          "(select 1 from temp.planned p where p.label = v.label)",
                          "i", err, f->id);
    for (size_t i = 0; ok && i < f->experiment->variant_count; i++) {
        const struct variant *v = &f->experiment->variants[i];
        if (v->baseline)
            ok = sql_run(f->db, "update variant set baseline = 0 where experiment = ?", "i", err, f->id);
        char *changes = changes_json(v);
        ok = ok && sql_run(f->db,
                           "insert into variant (experiment, label, position, baseline, changes) "
                           "select ?1, ?2, ?3, ?4, ?5 where exists (select 1 from temp.planned where label = ?2) "
                           "on conflict (experiment, label) do update set changes = excluded.changes, "
                           "baseline = excluded.baseline, position = iif(?6, position, excluded.position)",
                           "itiiti", err, f->id, v->label, position++, (int64_t)v->baseline, changes, others);
        memory_free(changes);
    }
    return ok;
}

static bool members_write(const struct freeze *f, struct error *err)
{
    return sql_run(f->db,
                   "insert or replace into member (variant, seed, run) select v.id, p.seed, r.id from temp.planned p "
                   "join variant v on v.experiment = ? and v.label = p.label join run r on r.key = p.key",
                   "i", err, f->id);
}

/* Before the members are written: the last command alone where it chooses all there are, none more where it adds no
 * member, else also those before it. What was frozen before there were choices counts as the file as it is. */
static bool choices_write(const struct freeze *f, struct error *err)
{
    return sql_run(f->db,
                   "update experiment set choices = case "
                   "when not exists (select 1 from variant v join member m on m.variant = v.id where v.experiment = ?1 "
                   "and not exists (select 1 from temp.planned p where p.label = v.label and p.seed = m.seed)) "
                   "then ?2 || char(10) "
                   "when not exists (select 1 from temp.planned p where not exists (select 1 from variant v join "
                   "member m on m.variant = v.id where v.experiment = ?1 and v.label = p.label and m.seed = p.seed)) "
                   "then choices "
                   "when instr(char(10) || choices, char(10) || ?2 || char(10)) then choices "
                   "else iif(choices = '', '[]' || char(10), choices) || ?2 || char(10) end where id = ?1",
                   "it", err, f->id, f->sweep->choice ? f->sweep->choice : "[]");
}

bool freeze_write(sqlite3 *db, const struct sweep *sweep, void (*note)(void *context, const char *text), void *context,
                  struct error *err)
{
    struct freeze f = {.db = db, .sweep = sweep, .experiment = sweep->experiment};
    fingerprint_make(sweep, f.fingerprint);
    return tokenizers_write(&f, err) && planned_write(&f, err) && experiment_find(&f, err) &&
           earlier_set_keep(&f, note, context, err) && experiment_write(&f, err) && stale_delete(&f, err) &&
           variants_write(&f, err) && choices_write(&f, err) && members_write(&f, err) &&
           summary_refresh(db, f.id, err);
}

bool freeze_runs_write(sqlite3 *db, const struct sweep *sweep, struct error *err)
{
    struct freeze f = {.db = db, .sweep = sweep, .experiment = sweep->experiment};
    bool ok = tokenizers_write(&f, err);
    for (size_t i = 0; ok && i < sweep->run_count; i++)
        ok = run_write(&f, &sweep->runs[i], err);
    return ok;
}
