import type { On } from '../database/bound.ts';
import { type SearchPosition, searchWords, type WordRow } from '../words/search.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';
import { findPlaces, type Place } from './place.ts';
import { driveWords, type Field, fieldBits } from './wordIndex.ts';

export interface SearchRequest {
  spaceId: string;
  containerId: string;
  query: string;
  fields: readonly Field[];
  limit: number;
  after?: SearchPosition | undefined;
}

export interface Found {
  item: DriveItem;
  place: Place;
  fields: Field[];
}

/** Finds items by name or text: each word of the query must begin a word there, see {@link searchWords}. */
export async function searchDrive(on: On, request: SearchRequest): Promise<{ found: Found[]; next?: SearchPosition }> {
  const drive = await driveModels(on).Drive.findOne({ where: { spaceId: request.spaceId } });
  if (drive === null) return { found: [] };
  const { query, limit, after } = request;
  const bits = request.fields.reduce((sum, field) => sum | fieldBits[field], 0);
  const search = { table: driveWords, owner: drive.number, query, bits, limit, after };
  return searchWords(on, search, (rows) => open(on, rows, request));
}

/** The items of these index rows that are not in the trash and are in the container, in the order of the rows. */
async function* open(
  on: On,
  rows: WordRow[],
  { containerId }: SearchRequest,
): AsyncGenerator<{ row: WordRow; found: Found }> {
  const items = await driveModels(on).DriveItem.findAll({ where: { number: rows.map(({ thing }) => thing) } });
  const byNumber = new Map(items.map((item) => [item.number, item]));
  const places = await findPlaces(
    on,
    items.map(({ id }) => id),
  );
  for (const row of rows) {
    const item = byNumber.get(row.thing);
    const place = item && places.get(item.id);
    if (item === undefined || place?.isLive !== true || place.containerId !== containerId) continue;
    const fields = (Object.keys(fieldBits) as Field[]).filter((field) => row.fields & fieldBits[field]);
    yield { row, found: { item, place, fields } };
  }
}
