import { QueryTypes } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { type On, sequelizeOf, transactionOf } from '../database/bound.ts';
import type { DriveItem, ItemKind } from './driveItem.ts';
import { driveModels } from './models.ts';
import { joinPath, nameKey } from './names.ts';

/** One item on the path from a container's root to a place. */
export interface Link {
  id: string;
  spaceId: string;
  parentId: string;
  kind: ItemKind;
  name: string;
  live: 1 | null;
  height: number;
}

/** The position of an item in the tree. */
export class Place {
  /** The container's root first, the item itself last. */
  readonly chain: readonly Link[];

  constructor(chain: readonly Link[]) {
    this.chain = chain;
  }

  get itself(): Link {
    const link = this.chain.at(-1);
    if (link === undefined) throw notFound('item');
    return link;
  }

  /** The root's name is its container's id. */
  get containerId(): string {
    return this.chain[0]?.name ?? '';
  }

  get names(): string[] {
    return this.chain.slice(1).map(({ name }) => name);
  }

  get path(): string {
    return joinPath(this.names);
  }

  /** 0 for a root. */
  get depth(): number {
    return this.chain.length - 1;
  }

  /** True if neither the item nor any folder above it is in the trash. */
  get isLive(): boolean {
    return this.chain.every(({ live }) => live === 1);
  }

  isInside(itemId: string): boolean {
    return this.chain.some(({ id }) => id === itemId);
  }

  below(child: DriveItem): Place {
    return new Place([...this.chain, linkOf(child)]);
  }
}

export function linkOf({ id, spaceId, parentId, kind, name, live, height }: DriveItem): Link {
  return { id, spaceId, parentId, kind, name, live, height };
}

/** The places of items by id, in one query. The depth of a tree is bounded, so the cost is too. */
export async function findPlaces(on: On, itemIds: readonly string[]): Promise<Map<string, Place>> {
  if (itemIds.length === 0) return new Map();
  const columns = ['id', 'space_id', 'parent_id', 'kind', 'name', 'live', 'height'];
  const of = (table: string) => columns.map((column) => `${table}.${column}`).join(', ');
  const rows = await sequelizeOf(on).query<Link & { startId: string }>(
    `WITH RECURSIVE up (start_id, distance, ${columns.join(', ')}) AS (
       SELECT i.id, 0, ${of('i')} FROM drive_items i WHERE i.id IN (?)
       UNION ALL
       SELECT up.start_id, up.distance + 1, ${of('p')} FROM up JOIN drive_items p ON p.id = up.parent_id
     )
     SELECT start_id AS startId, id, space_id AS spaceId, parent_id AS parentId, kind, name, live, height
       FROM up ORDER BY start_id, distance DESC`,
    { replacements: [[...itemIds]], type: QueryTypes.SELECT, transaction: transactionOf(on) },
  );
  const chains = Map.groupBy(rows, ({ startId }) => startId);
  return new Map([...chains].map(([id, chain]) => [id, new Place(chain)]));
}

export async function placeOf(on: On, item: DriveItem): Promise<Place> {
  const place = (await findPlaces(on, [item.id])).get(item.id);
  if (place === undefined) throw notFound('item');
  return place;
}

/** The item at a path of a container, with its place. Undefined if there is none. An empty path is the root. */
export async function findByPath(
  on: On,
  where: { spaceId: string; containerId: string; names: readonly string[] },
): Promise<{ item: DriveItem; place: Place } | undefined> {
  const along = await itemsAlong(on, where);
  const item = along[where.names.length];
  return item && { item, place: new Place(along.map(linkOf)) };
}

/** The items along a path, root first, in one query. Ends before a name that is missing or in the trash. */
export async function itemsAlong(
  on: On,
  { spaceId, containerId, names }: { spaceId: string; containerId: string; names: readonly string[] },
): Promise<DriveItem[]> {
  const keys = [containerId, ...names].map((name) => nameKey(name).toString('hex'));
  return sequelizeOf(on).query(
    `WITH RECURSIVE down (number, id, level) AS (
       SELECT number, id, 1 FROM drive_items WHERE parent_id = ? AND name_key = UNHEX(?) AND live = 1
       UNION ALL
       SELECT i.number, i.id, down.level + 1 FROM down JOIN drive_items i ON i.parent_id = down.id
          AND i.name_key = UNHEX(SUBSTRING_INDEX(SUBSTRING_INDEX(?, '/', down.level + 1), '/', -1)) AND i.live = 1
        WHERE down.level < ?
     )
     SELECT i.* FROM down JOIN drive_items i ON i.number = down.number ORDER BY down.level`,
    {
      replacements: [spaceId, keys[0], keys.join('/'), keys.length],
      model: driveModels(on).DriveItem,
      mapToModel: true,
      type: QueryTypes.SELECT,
      transaction: transactionOf(on),
    },
  );
}
