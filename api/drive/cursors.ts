import { decodeCursor, encodeCursor, invalidCursor } from '../../models/database/pages.ts';
import type { ChildPosition } from '../../models/drive/driveItem.ts';
import type { Cut } from '../../models/drive/fsTree.ts';

/** The cursors of a drive's lists. They are opaque to clients. An invalid one is 400. */

export function encodeChild({ isFile, nameKey }: ChildPosition): string {
  return `${Number(isFile)} ${nameKey.toString('utf8')}`;
}

export function decodeChild(cursor: string | undefined): ChildPosition | undefined {
  const [, isFile, name] = parse(cursor, /^([01]) (.+)$/s) ?? [];
  return name === undefined ? undefined : { isFile: isFile === '1', nameKey: Buffer.from(name) };
}

export function encodeCut(folderId: string, { after, shown }: Cut): string {
  return encodeCursor(`${folderId} ${shown} ${encodeChild(after)}`);
}

export function decodeCut(cursor: string | undefined): { folderId: string; cut: Cut } | undefined {
  const [, folderId, shown, isFile, name] = parse(cursor, /^(\S+) (\d{1,15}) ([01]) (.+)$/s) ?? [];
  if (folderId === undefined || name === undefined) return undefined;
  return { folderId, cut: { after: { isFile: isFile === '1', nameKey: Buffer.from(name) }, shown: Number(shown) } };
}

export function encodeTrashed({ trashedAt, number }: { trashedAt: Date | null; number: number }): string {
  return `${trashedAt?.toISOString() ?? ''} ${number}`;
}

export function decodeTrashed(cursor: string | undefined): { trashedAt: Date; number: number } | undefined {
  const [, trashedAt, number] = parse(cursor, /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\d{1,19})$/) ?? [];
  if (trashedAt === undefined) return undefined;
  const date = new Date(trashedAt);
  if (Number.isNaN(date.getTime())) throw invalidCursor();
  return { trashedAt: date, number: Number(number) };
}

function parse(cursor: string | undefined, form: RegExp): RegExpExecArray | undefined {
  const key = decodeCursor(cursor, form);
  return key === undefined ? undefined : (form.exec(key) ?? undefined);
}
