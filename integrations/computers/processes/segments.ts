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
  return inPlainFolder(folder, async (opened) => {
    const names = (await readdir(opened)).toSorted();
    const segments = names.map(async (name) => {
      const found = pattern.exec(name);
      const stats = found && (await lstat(`${opened}/${name}`).catch(() => undefined));
      if (found === null || stats?.isFile() !== true) return [];
      return [{ path: `${folder}/${name}`, index: Number(found[1]), start: Number(found[2]), size: stats.size }];
    });
    return (await Promise.all(segments)).flat();
  });
}
