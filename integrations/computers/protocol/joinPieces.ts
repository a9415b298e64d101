export interface Piece<K> {
  kind: K;
  payload: Uint8Array;
}

/** The order between streams is kept up to this many changes of the stream. */
const maxTurns = 4;

/**
 * Joins output into few pieces. Consecutive pieces of one stream become one piece. If the streams alternate more than a
 * few times, each stream becomes one piece: a program cannot rely on the order between two pipes within a moment, and a
 * flood of tiny writes must not become a flood of pieces.
 */
export function joinPieces<K>(pieces: readonly Piece<K>[]): Piece<K>[] {
  const turns: { kind: K; payloads: Uint8Array[] }[] = [];
  for (const { kind, payload } of pieces) {
    const last = turns.at(-1);
    if (last?.kind === kind) last.payloads.push(payload);
    else turns.push({ kind, payloads: [payload] });
  }
  return (turns.length > maxTurns ? byStream(turns) : turns).map(({ kind, payloads }) => ({
    kind,
    payload: payloads.length === 1 ? (payloads[0] as Uint8Array) : Buffer.concat(payloads),
  }));
}

function byStream<K>(turns: { kind: K; payloads: Uint8Array[] }[]): { kind: K; payloads: Uint8Array[] }[] {
  const streams = new Map<K, Uint8Array[]>();
  for (const { kind, payloads } of turns) {
    const known = streams.get(kind);
    if (known === undefined) streams.set(kind, payloads);
    else for (const payload of payloads) known.push(payload);
  }
  return [...streams].map(([kind, payloads]) => ({ kind, payloads }));
}
