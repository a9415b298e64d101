/** In `.git`: the commit that was checked out and the one that a git is bringing in its place. */
const moving = 'atrium-moving';

/**
 * Takes back what a git has left that was killed while it brought another commit: some files are that commit's already,
 * and one may be cut. Git itself would take them for somebody's changes. Only where every file that it was to touch is as
 * one of the two commits has it, or is a beginning of that, or is absent; else they are left, for somebody has changed
 * them since.
 */
export const undoHalfMove = `
undo_half_move() {
  note="$GIT_DIR/${moving}"
  [ -f "$note" ] || return 0
  find "$GIT_DIR" -maxdepth 1 -name 'atrium-undo.*' -exec rm -rf -- {} +
  box=$(mktemp -d "$GIT_DIR/atrium-undo.XXXXXX") || return 1
  (
    set -e
    read -r from to < "$note" || from=
    at=$(git rev-parse --verify --quiet HEAD) || at=$(git hash-object -t tree /dev/null)
    # It had come to its end, or somebody has gone on from there.
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
    # Somebody's files are in a folder that has come to its place.
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

/**
 * `move_to` runs what brings the commit `$1` in place of the one that is checked out, and ends with it. It is noted
 * first where nothing stands in its way: what git refuses, it leaves as it was.
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
