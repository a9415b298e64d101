/**
 * Sends hints of one key one after the other: of those that come while one is under way, a single one follows it. What
 * was written before a hint is seen by a hint that is sent after it.
 */
export function mergedHints<Hint extends { id: string }>(send: (hint: Hint) => Promise<unknown>): (hint: Hint) => void {
  const isWanted = new Map<string, boolean>();
  async function sendAll(hint: Hint): Promise<void> {
    while (isWanted.get(hint.id) === true) {
      isWanted.set(hint.id, false);
      await send(hint);
    }
    isWanted.delete(hint.id);
  }
  return (hint) => {
    const isUnderWay = isWanted.has(hint.id);
    isWanted.set(hint.id, true);
    if (!isUnderWay) void sendAll(hint);
  };
}
