/**
 * Sends the hints of one id one after the other. Hints that arrive during a send are merged into one that follows it. A
 * send sees everything that was written before it began.
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
