import { joinPieces, type Piece } from '../protocol/joinPieces.ts';
import type { OutputKind } from '../types.ts';
import { encodeRecord, headerAt, isOutput, maxPayloadBytes, recordHeaderBytes } from './records.ts';

export type LogPiece = Piece<OutputKind>;

/** Joins pieces into few records, none of them too long. Records that are not output stay where they are. */
export function* joinRecords(pieces: readonly LogPiece[]): Generator<LogPiece> {
  let output: LogPiece[] = [];
  for (const piece of pieces) {
    if (isOutput(piece.kind)) {
      if (piece.payload.length > 0) output.push(piece);
      continue;
    }
    yield* cut(joinPieces(output));
    output = [];
    yield piece;
  }
  yield* cut(joinPieces(output));
}

function* cut(pieces: LogPiece[]): Generator<LogPiece> {
  for (const { kind, payload } of pieces) {
    for (let from = 0; from < payload.length; from += maxPayloadBytes) {
      yield { kind, payload: payload.subarray(from, from + maxPayloadBytes) };
    }
  }
}

/** Joins encoded records of one stream that follow each other. */
export function joinEncoded(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  let open: { kind: OutputKind; position: number; payloads: Buffer[]; length: number } | undefined;
  const close = () => {
    if (open !== undefined) parts.push(encodeRecord({ ...open, payload: Buffer.concat(open.payloads) }));
    open = undefined;
  };
  let at = 0;
  for (let header = headerAt(bytes, at); header !== undefined; header = headerAt(bytes, at)) {
    const { kind, position, length } = header;
    const end = at + recordHeaderBytes + length;
    if (isOutput(kind)) {
      const follows = open?.kind === kind && open.position + open.length === position;
      if (!follows || (open?.length ?? 0) + length > maxPayloadBytes) close();
      open ??= { kind, position, payloads: [], length: 0 };
      open.payloads.push(bytes.subarray(at + recordHeaderBytes, end));
      open.length += length;
    } else {
      close();
      parts.push(bytes.subarray(at, end));
    }
    at = end;
  }
  close();
  return Buffer.concat(parts);
}
