import { QueryTypes } from 'sequelize';
import { type On, sequelizeOf } from '../database/bound.ts';
import { wordsAskedFor } from './words.ts';
import type { WordTable } from './wordTable.ts';

export interface WordSearch {
  table: WordTable;
  owner: number | Buffer;
  query: string;
  /** The sum of the bits of the fields that are searched. */
  bits: number;
  limit: number;
  after?: SearchPosition | undefined;
}

/** The last index row that was read: which asked word was looked up, the word found, and the thing. */
export interface SearchPosition {
  asked: number;
  word: string;
  thing: number;
}

export interface WordRow {
  word: Buffer;
  thing: number;
  fields: number;
}

const rowsPerLook = 500;
const mostRowsPerSearch = 2_500;
const countedUpTo = 1_000;

/**
 * Finds things that have each asked word at the beginning of a word. Exact words come before longer ones, then the
 * newest first. `open` reads the things of index rows, in the same order, and leaves out those that must not be found.
 * It is read only as far as needed. One search reads a bounded part of the index, for the rarest asked word. If more is
 * left, `next` says where to continue, even if nothing was found yet.
 */
export async function searchWords<Found>(
  on: On,
  search: WordSearch,
  open: (rows: WordRow[]) => AsyncIterable<{ row: WordRow; found: Found }>,
): Promise<{ found: Found[]; next?: SearchPosition }> {
  const words = wordsAskedFor(search.query);
  if (words.length === 0) return { found: [] };
  const index = new WordIndex(on, search);
  const asked = search.after?.asked ?? (await index.rarest(words));
  const driver = words[asked];
  if (driver === undefined) return { found: [] };

  const found: Found[] = [];
  let after = search.after;
  for (let looked = 0; looked < mostRowsPerSearch; looked += rowsPerLook) {
    const rows = await index.rows(driver, after);
    const matching = await index.narrow(rows, driver, words);
    for await (const each of open(matching)) {
      if (found.length === search.limit) return { found, next: after as SearchPosition };
      found.push(each.found);
      after = positionOf(asked, each.row);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsPerLook) return { found };
    after = positionOf(asked, last);
  }
  return { found, ...(after && { next: after }) };
}

function positionOf(asked: number, { word, thing }: WordRow): SearchPosition {
  return { asked, word: word.toString(), thing };
}

/** The part of the index that this search may see. */
class WordIndex {
  private readonly on: On;
  private readonly columns: WordTable;
  private readonly owner: number | Buffer;
  private readonly bits: number;

  constructor(on: On, { table, owner, bits }: WordSearch) {
    this.on = on;
    this.columns = table;
    this.owner = owner;
    this.bits = bits;
  }

  /** The position of the asked word with the fewest matches. Each count stops at {@link countedUpTo}. */
  async rarest(words: readonly string[]): Promise<number> {
    if (words.length === 1) return 0;
    const { table, owner } = this.columns;
    const counts = await Promise.all(
      words.map(async (word) => {
        const rows = await this.select<{ n: number }>(
          `SELECT COUNT(*) AS n FROM (SELECT 1 FROM ${table} WHERE ${owner} = ? AND word >= ? AND word < ? LIMIT ?) few`,
          [this.owner, ...rangeOf(word), countedUpTo],
        );
        return rows[0]?.n ?? 0;
      }),
    );
    return counts.indexOf(Math.min(...counts));
  }

  async rows(prefix: string, after?: SearchPosition): Promise<WordRow[]> {
    const { table, owner, thing } = this.columns;
    const read = (range: string, values: unknown[], limit: number) =>
      this.select<WordRow>(
        `SELECT word, ${thing} AS thing, fields FROM ${table}
          WHERE ${owner} = ? AND ${range} ORDER BY word, ${thing} DESC LIMIT ?`,
        [this.owner, ...values, limit],
      );
    const [from, to] = rangeOf(prefix);
    if (after === undefined) return read('word >= ? AND word < ?', [from, to], rowsPerLook);
    // Two ranges of the index, so that a late page costs no more than the first one.
    const word = Buffer.from(after.word);
    const same = await read(`word = ? AND ${thing} < ?`, [word, after.thing], rowsPerLook);
    if (same.length === rowsPerLook) return same;
    return [...same, ...(await read('word > ? AND word < ?', [word, to], rowsPerLook - same.length))];
  }

  /** The rows whose things have the other words too. A thing appears once, at its first word in the driver's range. */
  async narrow(rows: WordRow[], driver: string, words: readonly string[]): Promise<WordRow[]> {
    const { table, thing } = this.columns;
    let left = rows.filter(({ fields }) => (fields & this.bits) !== 0);
    for (const word of words) {
      if (left.length === 0) return [];
      const numbers = left.map((row) => row.thing);
      const matches = await this.select<WordRow>(
        `SELECT ${thing} AS thing, MIN(word) AS word FROM ${table}
          WHERE ${thing} IN (?) AND word >= ? AND word < ? AND fields & ? GROUP BY ${thing}`,
        [numbers, ...rangeOf(word), this.bits],
      );
      const first = new Map(matches.map((match) => [match.thing, match.word]));
      left = left.filter((row) => {
        const match = first.get(row.thing);
        return match !== undefined && (word !== driver || match.equals(row.word));
      });
    }
    return left;
  }

  private select<Row extends object>(sql: string, replacements: unknown[]): Promise<Row[]> {
    return sequelizeOf(this.on).query<Row>(sql, { replacements, type: QueryTypes.SELECT });
  }
}

/** The range of all words with this prefix. No byte of UTF-8 is 0xFF. */
function rangeOf(prefix: string): [Buffer, Buffer] {
  const bytes = Buffer.from(prefix);
  return [bytes, Buffer.concat([bytes, Buffer.from([0xff])])];
}
