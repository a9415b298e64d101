/** The part of a name's letters that may differ in a misspelling. */
const mostWrong = 0.25;

/** The name that was probably meant. Undefined when none is near. */
export function nearestOf(name: string, names: readonly string[]): string | undefined {
  // All names begin with this prefix, so its letters do not count.
  const prefix = 'ATRIUM_'.length;
  const most = Math.max(2, Math.floor((name.length - prefix) * mostWrong));
  return names
    .map((known) => ({ known, edits: editsBetween(name, known) }))
    .filter(({ known, edits }) => edits <= most && edits < known.length - prefix)
    .toSorted((one, other) => one.edits - other.edits)[0]?.known;
}

/** How many letters are added, left out or changed between two words (Levenshtein distance). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (let at = 1; at <= other.length; at++) {
      const changed = (row[at - 1] ?? 0) + (other[at - 1] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
