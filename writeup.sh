#!/bin/sh
# One Markdown page of several experiments' reports:  ./writeup.sh RUNNER DB PAGE.md EXPERIMENT...
#
# Each report goes to reports/EXPERIMENT beside the page, with its HTML page and figures; the page has all their text,
# headings one level down, and shows their figures from there. From the database alone: nothing is trained.
set -eu
[ $# -ge 4 ] || { echo "usage: ./writeup.sh RUNNER DB PAGE.md EXPERIMENT..." >&2; exit 2; }
runner=$1 db=$2 page=$3
shift 3
folder=$(dirname "$page")
mkdir -p "$folder/reports"
new=$page.new
trap 'rm -f "$new"' EXIT
{
    echo "# Answers of $(printf '%s, ' "$@" | sed 's/, $//')"
    echo
    echo "Made by \`make writeup\` from the database; each part is what \`runner report\` says of one experiment."
} >"$new"
for experiment; do
    "$runner" report "$experiment" --db "$db" --out "$folder/reports/$experiment" >&2
    {
        echo
        awk -v folder="reports/$experiment" '
            /^```/ { code = !code }
            !code && /^#/ { $0 = "#" $0 }
            !code && /^!\[/ { sub(/\]\(figures\//, "](" folder "/figures/") }
            { print }' "$folder/reports/$experiment/report.md"
    } >>"$new"
done
mv "$new" "$page"
echo "$page"
