import { QueryTypes } from 'sequelize';
import { type On, sequelizeOf } from '../bound.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';
import { findPlaces, type Place } from './place.ts';
import { type Field, fieldBits } from './wordIndex.ts';
import { wordsAskedFor } from './words.ts';

export interface SearchRequest {
  spaceId: string;
  containerId: string;
  query: string;
  fields: readonly Field[];
  limit: number;
  after?: SearchPosition | undefined;
}

/** The last row of the index that was looked at: which of the words asked for, the word found, and its item. */
export interface SearchPosition {
  asked: number;
  word: string;
  itemNumber: number;
}

export interface Found {
  item: DriveItem;
  place: Place;
  fields: Field[];
}

interface WordRow {
  word: Buffer;
  itemNumber: number;
  fields: number;
}

const rowsPerLook = 500;
const mostRowsPerSearch = 2_500;
const countedUpTo = 1_000;

/**
 * Items in whose names or texts each word that is asked for begins a word; exact words before longer ones, then the
 * newest first. One search looks at a bounded part of the index, of the word that is rarest; where that was not all,
 * `next` says where to go on, even if nothing was found yet.
 */
export async function searchDrive(on: On, request: SearchRequest): Promise<{ found: Found[]; next?: SearchPosition }> {
  const drive = await driveModels(on).Drive.findOne({ where: { spaceId: request.spaceId } });
  const words = wordsAskedFor(request.query);
  if (drive === null || words.length === 0) return { found: [] };
  const bits = request.fields.reduce((sum, field) => sum | fieldBits[field], 0);
  const index = new WordIndex(on, drive.number, bits);
  const asked = request.after?.asked ?? (await index.rarest(words));
  const driver = words[asked];
  if (driver === undefined) return { found: [] };

  const found: Found[] = [];
  let after = request.after;
  for (let looked = 0; looked < mostRowsPerSearch; looked += rowsPerLook) {
    const rows = await index.rows(driver, after);
    const matching = await index.narrow(rows, driver, words);
    for (const row of await open(on, matching, request)) {
      if (found.length === request.limit) return { found, next: after as SearchPosition };
      found.push(row.found);
      after = positionOf(asked, row);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsPerLook) return { found };
    after = positionOf(asked, last);
  }
  return { found, ...(after && { next: after }) };
}

function positionOf(asked: number, { word, itemNumber }: WordRow): SearchPosition {
  return { asked, word: word.toString(), itemNumber };
}

/** The index of words, as far as this search may see it. */
class WordIndex {
  private readonly on: On;
  private readonly driveNumber: number;
  private readonly bits: number;

  constructor(on: On, driveNumber: number, bits: number) {
    this.on = on;
    this.driveNumber = driveNumber;
    this.bits = bits;
  }

  /** Which of the words has the fewest matches, as far as it is worth counting. */
  async rarest(words: readonly string[]): Promise<number> {
    if (words.length === 1) return 0;
    const counts = await Promise.all(
      words.map(async (word) => {
        const rows = await this.select<{ n: number }>(
          `SELECT COUNT(*) AS n FROM (SELECT 1 FROM drive_words WHERE drive_number = ? AND word >= ? AND word < ? LIMIT ?) few`,
          [this.driveNumber, ...rangeOf(word), countedUpTo],
        );
        return rows[0]?.n ?? 0;
      }),
    );
    return counts.indexOf(Math.min(...counts));
  }

  async rows(prefix: string, after?: SearchPosition): Promise<WordRow[]> {
    const read = (range: string, values: unknown[], limit: number) =>
      this.select<WordRow>(
        `SELECT word, item_number AS itemNumber, fields FROM drive_words
          WHERE drive_number = ? AND ${range} ORDER BY word, item_number DESC LIMIT ?`,
        [this.driveNumber, ...values, limit],
      );
    const [from, to] = rangeOf(prefix);
    if (after === undefined) return read('word >= ? AND word < ?', [from, to], rowsPerLook);
    // Two ranges of the index, so that a page far back costs what the first one does.
    const word = Buffer.from(after.word);
    const same = await read('word = ? AND item_number < ?', [word, after.itemNumber], rowsPerLook);
    if (same.length === rowsPerLook) return same;
    return [...same, ...(await read('word > ? AND word < ?', [word, to], rowsPerLook - same.length))];
  }

  /** The rows whose items have the other words too, each item once: at its first word of the driver's range. */
  async narrow(rows: WordRow[], driver: string, words: readonly string[]): Promise<WordRow[]> {
    let left = rows.filter(({ fields }) => (fields & this.bits) !== 0);
    for (const word of words) {
      if (left.length === 0) return [];
      const numbers = left.map(({ itemNumber }) => itemNumber);
      const matches = await this.select<WordRow>(
        `SELECT item_number AS itemNumber, MIN(word) AS word FROM drive_words
          WHERE item_number IN (?) AND word >= ? AND word < ? AND fields & ? GROUP BY item_number`,
        [numbers, ...rangeOf(word), this.bits],
      );
      const first = new Map(matches.map((match) => [match.itemNumber, match.word]));
      left = left.filter((row) => {
        const match = first.get(row.itemNumber);
        return match !== undefined && (word !== driver || match.equals(row.word));
      });
    }
    return left;
  }

  private select<Row extends object>(sql: string, replacements: unknown[]): Promise<Row[]> {
    return sequelizeOf(this.on).query<Row>(sql, { replacements, type: QueryTypes.SELECT });
  }
}

/** All words that begin so. No byte of UTF-8 is 0xFF. */
function rangeOf(prefix: string): [Buffer, Buffer] {
  const bytes = Buffer.from(prefix);
  return [bytes, Buffer.concat([bytes, Buffer.from([0xff])])];
}

/** The items of index rows that are alive and in the container, in the rows' order. */
async function open(on: On, rows: WordRow[], { containerId }: SearchRequest): Promise<(WordRow & { found: Found })[]> {
  const items = await driveModels(on).DriveItem.findAll({
    where: { number: rows.map(({ itemNumber }) => itemNumber) },
  });
  const byNumber = new Map(items.map((item) => [item.number, item]));
  const places = await findPlaces(
    on,
    items.map(({ id }) => id),
  );
  return rows.flatMap((row) => {
    const item = byNumber.get(row.itemNumber);
    const place = item && places.get(item.id);
    if (item === undefined || place?.isLive !== true || place.containerId !== containerId) return [];
    const fields = (Object.keys(fieldBits) as Field[]).filter((field) => row.fields & fieldBits[field]);
    return [{ ...row, found: { item, place, fields } }];
  });
}
