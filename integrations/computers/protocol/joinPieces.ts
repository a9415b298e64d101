export interface Piece<K> {
  kind: K;
  payload: Uint8Array;
}

/** How often the streams may take turns in what is passed on together. */
const maxTurns = 4;

/**
 * Output as few pieces: one for neighbours of a stream. Where streams take turns more often than a few times, one for
 * each stream: what was written within a moment has no order between two pipes that anybody could rely on, and a flood
 * of tiny writes must not become a flood of pieces.
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
