/** A line of a dump. */
export type Entry =
  | { begin: typeof format; name: string }
  /** Defines something. The text may have the database's former name. `last`: it comes after all data. */
  | {
      define: string;
      mode: string;
      collation?: string | undefined;
      last?: 'view' | 'trigger' | undefined;
      /** Set if it comes after all data. */
      name?: string | undefined;
    }
  /** Rows, as one statement. */
  | { rows: string }
  /** A large row: a statement, and its values in base64 where they are bytes. */
  | { row: string; values: (string | { bytes: string } | null)[] }
  /** A dump without this entry is incomplete. */
  | { end: true };

export const format = 'atrium-database/1';

const [newLine, quotesText] = ['\n', 'utf8'] as const;

export async function* linesOf(entries: AsyncIterable<Entry>): AsyncGenerator<Buffer> {
  for await (const entry of entries) yield Buffer.from(JSON.stringify(entry) + newLine, quotesText);
}

export async function* entriesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Entry> {
  let begun: Buffer[] = [];
  for await (let chunk of bytes) {
    for (let end = chunk.indexOf(newLine); end >= 0; end = chunk.indexOf(newLine)) {
      begun.push(chunk.subarray(0, end));
      yield JSON.parse(Buffer.concat(begun).toString(quotesText)) as Entry;
      begun = [];
      chunk = chunk.subarray(end + 1);
    }
    begun.push(chunk);
  }
}
