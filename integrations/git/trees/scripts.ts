import { undoHalfMove } from './halfMoves.ts';
import { exitCodes } from './treeShell.ts';

/**
 * Into the tree `$1`, if it is that of the item `$2`: both are taken off the arguments. Git looks for no other
 * repository than this one.
 */
export const enter = `
cd -- "./$1" 2>/dev/null || exit ${exitCodes.missing}
[ -d .git ] && [ "$(cat .git/atrium-item 2>/dev/null)" = "$2" ] || exit ${exitCodes.missing}
here=$(pwd -P)
export GIT_DIR="$here/.git" GIT_WORK_TREE="$here"
shift 2
`;

/** The same, to look: nothing is written, not even what git would write to be quicker next time. */
export const enterToLook = `${enter}
export GIT_OPTIONAL_LOCKS=0
`;

/**
 * The same, to change it. A lock whose git was killed is removed: that none works in this tree is seen by where the
 * processes are. Else it waits for that one, for ten seconds.
 * What a killed one has left half done is undone.
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

/** Ends where a person has begun what moving HEAD would undo: git itself forgets a merge at any checkout. */
export const leaveUnfinished = `
for sign in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
  [ ! -e ".git/$sign" ] || exit ${exitCodes.unfinished}
done
`;
