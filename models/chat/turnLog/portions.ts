import type { SegmentRow } from './turnLog.ts';

/** What is handed over at once of a log that is read: a long one goes out at its reader's pace. */
const charactersAtOnce = 128 * 1024;

/** The chunks after `position`, in portions. A chunk is never divided, however large it is. */
export function* portionsOf(segments: SegmentRow[], position: number): Generator<string[]> {
  let portion: string[] = [];
  let characters = 0;
  for (const { firstSeq, lines } of segments) {
    for (const line of lines.split('\n').slice(Math.max(0, position + 1 - firstSeq))) {
      portion.push(line);
      characters += line.length;
      if (characters < charactersAtOnce) continue;
      yield portion;
      portion = [];
      characters = 0;
    }
  }
  if (portion.length > 0) yield portion;
}

/** The chunks after `position`, as far as they go without a gap. */
export function linesAfter(segments: SegmentRow[], position: number): string[] {
  const found: string[] = [];
  for (const { firstSeq, lastSeq, lines } of segments) {
    const next = position + 1 + found.length;
    if (lastSeq < next) continue;
    if (firstSeq > next) break;
    for (const line of lines.split('\n').slice(next - firstSeq)) found.push(line);
  }
  return found;
}
