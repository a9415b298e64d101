/** What is missing in a backup, or in a database that was made from one. */
export interface LeftOut {
  count: number;
  /** The first ones. */
  items: { kind: 'table' | 'view' | 'function' | 'procedure' | 'trigger'; name: string }[];
}

export function writeLeftOut({ count, items }: LeftOut): string | null {
  return count === 0 ? null : JSON.stringify({ count, items });
}

export function readLeftOut(written: string | null): LeftOut {
  return written === null ? { count: 0, items: [] } : (JSON.parse(written) as LeftOut);
}
