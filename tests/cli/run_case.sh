# Sourced by the cases of `run`: a text, a small experiment file, and the curve of a database without its clock.

# file steps seeds: two variants on a text of numbered lines
experiment() {
    seq -f 'line %g of a small text with a few words in it' 400 >text.txt
    cat >"$1" <<END
# Does the norm matter on a small text?
data: {corpus: text.txt, tokenizer: {kind: byte}}
model: {d_model: 32, n_heads: 2, n_layers: 1, context_length: 32, dropout: 0.5}
training: {steps: $2, batch_size: 4, warmup_steps: 4}
evaluation: {interval: 10, blocks: 4, final_blocks: 8}
seeds: $3
sweep: {method: ablation, parameters: {model.norm: [rmsnorm]}}
END
}

curves() { # database
    sqlite3 "$1" 'select variant, seed, step, tokens, split, metric, value from curves order by 1, 2, 3, 4, 5, 6' | md5sum
}

wait_for() { # words file: until the file has them
    for _ in $(seq 3000); do
        grep -q "$1" "$2" 2>/dev/null && return
        sleep 0.02
    done
    echo "never saw '$1' in $2"
}

compare() { # first second
    [ "$(curves "$1/results.db")" = "$(curves "$2/results.db")" ] && echo 'curves equal' || echo 'curves differ'
    local file
    for file in "$1"/checkpoints/*/final.safetensors; do
        cmp "$file" "$2/${file#"$1"/}" || echo 'weights differ'
    done
}

states() { # database
    sqlite3 "$1/results.db" 'select variant, seed, state, reason from runs order by 1, 2'
}
