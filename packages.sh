#!/bin/sh
# Installs the Debian packages that are missing, and only those:  ./packages.sh build [test] [lint] [cluster]
#
# One line a package: the group that needs it, its name and, where another package may bring the same program, the
# program whose presence is enough.
set -eu

packages='
build   gcc              gcc
build   make             make
build   libc6-dev
build   libopenblas-dev
build   libdnnl-dev
build   libutf8proc-dev
build   libyaml-dev
build   libsqlite3-dev
build   libjansson-dev
build   libmd-dev
build   libgsl-dev
build   gnuplot-nox      gnuplot
test    libcriterion-dev
test    clang            clang
test    libclang-rt-dev
test    clang-format     clang-format
test    sqlite3          sqlite3
cluster slurm-wlm        slurmctld
cluster munge            munged
lint    clang-tidy       clang-tidy
lint    cppcheck         cppcheck
lint    llvm             llvm-cov
'

[ $# -gt 0 ] || { echo "usage: ./packages.sh build|test|lint|cluster..." >&2; exit 2; }
for group in "$@"; do
    case $group in
    build | test | lint | cluster) ;;
    *) echo "packages.sh: unknown group '$group', expected build, test, lint or cluster" >&2; exit 2 ;;
    esac
done

wanted() {
    echo "$packages" | while read -r group package program; do
        case " $* " in *" ${group:-none} "*) echo "$package ${program:-}" ;; esac
    done
}

present() { # package [program]
    if [ -n "${2:-}" ] && command -v "$2" >/dev/null 2>&1; then return 0; fi
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v apt-get >/dev/null 2>&1; then
    echo "packages.sh: no apt-get here; these Debian packages, or what they are called elsewhere, must be there:" >&2
    wanted "$@" | while read -r package program; do echo "    $package" >&2; done
    exit 0
fi

missing=$(wanted "$@" | while read -r package program; do present "$package" "$program" || echo "$package"; done)
[ -n "$missing" ] || exit 0
missing=$(echo $missing)

as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "packages.sh: not root and no sudo here; run as root: apt-get install $missing" >&2
        exit 1
    }
    as_root=sudo
fi

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
}

known() { # every missing package is in the package lists
    for package in $missing; do
        apt-cache show "$package" >/dev/null 2>&1 || return 1
    done
}

echo "Installing: $missing" >&2
# Lists that are absent or too old for the archive are fetched anew.
if ! known || ! install; then
    $as_root apt-get update -q >&2
    install
fi
