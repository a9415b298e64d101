import { exitCodes } from './failures.ts';

/** A file in `.git` that names the checked-out commit and the one that is replacing it. */
const moving = 'atrium-moving';

/**
 * Undoes a switch between two commits whose git was killed: some files are already the new commit's, and one may be
 * truncated. Git itself would take them for a user's changes. The undo acts only if each affected file is absent,
 * equals its version in one of the commits, or is a beginning of one. Otherwise a user has changed files since, and all
 * are left alone.
 */
const undoHalfMove = `
undo_half_move() {
  note="$GIT_DIR/${moving}"
  [ -f "$note" ] || return 0
  find "$GIT_DIR" -maxdepth 1 -name 'atrium-undo.*' -exec rm -rf -- {} +
  box=$(mktemp -d "$GIT_DIR/atrium-undo.XXXXXX") || return 1
  (
    set -e
    read -r from to < "$note" || from=
    at=$(git rev-parse --verify --quiet HEAD) || at=$(git hash-object -t tree /dev/null)
    # The change had ended, or somebody has moved on.
    [ "$at" = "$from" ] || exit 0
    lines() { LC_ALL=C sort -u > "$box/$1"; }
    changed() { git diff-tree -r --no-renames "$@" "$from" "$to"; }
    changed --name-only | lines touched
    git diff-index --cached --no-renames --name-only "$from" | lines staged
    [ -z "$(LC_ALL=C comm -12 "$box/touched" "$box/staged")" ] || exit 0
    [ ! -e "$GIT_DIR/index" ] || cp -p -- "$GIT_DIR/index" "$box/from"
    differing() {
      GIT_INDEX_FILE="$box/$1" git update-index -q --refresh >/dev/null || true
      GIT_INDEX_FILE="$box/$1" git diff-files --no-renames --name-only --diff-filter=d
    }
    { differing from; changed --name-only --diff-filter=A; } | lines unlike-from
    [ ! -e "$box/from" ] || cp -p -- "$box/from" "$box/to"
    GIT_INDEX_FILE="$box/to" git read-tree -m -i "$from" "$to" 2>/dev/null || exit 0
    { differing to; changed --name-only --diff-filter=D; } | lines unlike-to
    LC_ALL=C comm -12 "$box/unlike-from" "$box/unlike-to" | LC_ALL=C comm -12 - "$box/touched" > "$box/unknown"
    [ "$(wc -l < "$box/unknown")" -le 100 ] || exit 0
    begins() {
      git cat-file --filters "$1:$name" 2>/dev/null | head -c "$size" | cmp -s - "./$name"
    }
    while IFS= read -r name; do
      if [ -L "$name" ] || [ ! -f "$name" ]; then exit 0; fi
      size=$(wc -c < "$name")
      begins "$to" || begins "$from" || exit 0
    done < "$box/unknown"
    changed -z --name-only --diff-filter=A > "$box/added"
    xargs -0 -r rm -f -- < "$box/added"
    xargs -0 -r dirname -z -- < "$box/added" | sort -zu | xargs -0 -r rmdir -p -- 2>/dev/null || true
    changed --name-only --diff-filter=a > "$box/kept"
    # A folder with somebody's files is now in the file's place.
    while IFS= read -r name; do
      if [ -d "$name" ] && [ ! -L "$name" ]; then exit 0; fi
    done < "$box/kept"
    changed -z --name-only --diff-filter=a | git checkout-index --force --quiet -z --stdin
    git update-index -q --refresh >/dev/null || true
  )
  undone=$?
  rm -rf -- "$box"
  [ "$undone" -ne 0 ] || rm -f -- "$note"
  return "$undone"
}
`;

/** Enters the tree `$1` if it belongs to the item `$2`, and shifts both arguments. Git uses only this repository. */
export const enter = `
cd -- "./$1" 2>/dev/null || exit ${exitCodes.missing}
[ -d .git ] && [ "$(cat .git/atrium-item 2>/dev/null)" = "$2" ] || exit ${exitCodes.missing}
here=$(pwd -P)
export GIT_DIR="$here/.git" GIT_WORK_TREE="$here"
shift 2
`;

/** Enters a tree to read it: git does not even update its index. */
export const enterToLook = `${enter}
export GIT_OPTIONAL_LOCKS=0
`;

/**
 * Enters a tree to change it. It waits up to ten seconds for another git, which is found by its working directory. If
 * there is none, locks are leftovers of a killed git and are removed. A half-done change is undone.
 */
export const enterToChange = `${enter}
locks() {
  find .git -maxdepth 1 -name '*.lock' 2>/dev/null
  find .git/refs -name '*.lock' 2>/dev/null
}
is_busy() {
  for process in /proc/[0-9]*; do
    name=
    { read -r name < "$process/comm"; } 2>/dev/null
    case "$name" in
      git*) ;;
      *) continue ;;
    esac
    case "$(readlink "$process/cwd" 2>/dev/null)" in
      "$here" | "$here"/*) return 0 ;;
    esac
  done
  return 1
}
tries=0
while [ -n "$(locks)" ]; do
  if ! is_busy; then
    locks | while IFS= read -r lock; do rm -f -- "$lock"; done
    break
  fi
  tries=$((tries + 1))
  [ "$tries" -gt 50 ] && exit ${exitCodes.busy}
  sleep 0.2
done
${undoHalfMove}
undo_half_move || exit $?
`;

/** Exits during an unfinished merge, cherry-pick, revert or rebase, which git would forget when HEAD moves. */
export const leaveUnfinished = `
for sign in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
  [ ! -e ".git/$sign" ] || exit ${exitCodes.unfinished}
done
`;

/**
 * Defines `move_to`, which runs a command that checks out the commit `$1`, and exits with it. It notes the move first,
 * so that a killed move can be undone. A move that git will refuse is not noted, because it changes nothing.
 */
export const moveTo = `
move_to() {
  to=$1
  shift
  from=$(git rev-parse --verify --quiet HEAD) || from=$(git hash-object -t tree /dev/null)
  if [ -n "$to" ] && [ "$from" != "$to" ] \\
    && git read-tree --dry-run -m -u --exclude-per-directory=.gitignore "$from" "$to" 2>/dev/null; then
    printf '%s %s\\n' "$from" "$to" > "$GIT_DIR/${moving}"
  fi
  trap 'undo_half_move; exit 143' TERM
  "$@" 2>&1
  code=$?
  if [ "$code" -eq 0 ]; then rm -f -- "$GIT_DIR/${moving}"; else undo_half_move; fi
  exit "$code"
}
`;
