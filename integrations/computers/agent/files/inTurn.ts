let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `work` when all that came before it has ended. What looks at a name and then gives it to a file does both in
 * here: else two could find it free, and the second would take the first one's file away.
 */
export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const mine = last.then(work);
  last = mine.catch(() => undefined);
  return mine;
}
