import { lstat, readdir } from 'node:fs/promises';
import { inPlainFolder } from './plainFiles.ts';

/** A part of a log: a file whose name has its index and the position at which it begins. */
export interface Segment {
  path: string;
  index: number;
  start: number;
  /** The size of its whole records. */
  size: number;
}

const pattern = /^(\d{8})-(\d{15})\.log$/;

export function segmentPath(folder: string, index: number, start: number): string {
  return `${folder}/${String(index).padStart(8, '0')}-${String(start).padStart(15, '0')}.log`;
}

/** The segments on disk, in order. */
export function segmentsIn(folder: string): Promise<Segment[]> {
  return inPlainFolder(folder, (opened) => segmentsOf(folder, opened));
}

async function segmentsOf(folder: string, opened: string): Promise<Segment[]> {
  const names = (await readdir(opened)).filter((name) => pattern.test(name)).toSorted();
  const segments = await Promise.all(
    names.map(async (name) => {
      const [, index, start] = pattern.exec(name) as RegExpExecArray;
      const path = `${folder}/${name}`;
      const size = await lstat(`${opened}/${name}`).then(
        (stats) => (stats.isFile() ? stats.size : undefined),
        () => undefined,
      );
      return size === undefined ? undefined : { path, index: Number(index), start: Number(start), size };
    }),
  );
  return segments.filter((segment) => segment !== undefined);
}
