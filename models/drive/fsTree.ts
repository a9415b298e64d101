import { QueryTypes } from 'sequelize';
import { type On, sequelizeOf, transactionOf } from '../database/bound.ts';
import type { ChildPosition, DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';

/** Where a folder's list of children was cut off. */
export interface Cut {
  after: ChildPosition;
  /** The number of children shown up to here. */
  shown: number;
}

/** An item as the tree shows it. */
export interface TreeNode {
  item: DriveItem;
  children: TreeNode[];
  /** The number of children that are not shown. */
  missing: number;
  /** Where the list continues. Undefined if no child is missing or none is shown. */
  cut: Cut | undefined;
}

export interface TreeOptions {
  /** The maximum number of entries, not counting the root. */
  budget: number;
  /** The maximum number of levels below the root. */
  depth: number;
  /** Continues the list of the root's children from here. */
  from?: Cut | undefined;
}

const foldersPerStatement = 100;

/**
 * The tree below an item, breadth first. A level is shown as far as the budget goes before the next one begins. If the
 * budget is too small for a level, each of its folders gets a fair share. It reads only the items it shows, by the
 * index that lists a folder. The missing ones come from the folders' own counts. So the cost does not depend on the
 * size of the drive.
 */
export async function buildTree(on: On, root: DriveItem, options: TreeOptions): Promise<TreeNode> {
  const top = nodeOf(root);
  let left = options.budget;
  let level = [top];
  let depth = 0;
  if (options.from !== undefined) {
    const { after, shown } = options.from;
    show(top, await driveModels(on).DriveItem.children(root.id, left, after), left, shown);
    left -= top.children.length;
    level = top.children;
    depth = 1;
  }
  for (; depth < options.depth && left > 0; depth++) {
    const folders = level.filter(({ item }) => item.childCount > 0);
    if (folders.length === 0) break;
    const sizes = folders.map(({ item }) => item.childCount);
    await fill(on, folders, shareBudget(sizes, left));
    level = folders.flatMap(({ children }) => children);
    left -= level.length;
  }
  return top;
}

function nodeOf(item: DriveItem): TreeNode {
  return { item, children: [], missing: item.childCount, cut: undefined };
}

function show(node: TreeNode, items: DriveItem[], limit: number, shownBefore = 0): void {
  node.children = items.map(nodeOf);
  const shown = shownBefore + items.length;
  // Fewer items than the limit means that there are no more, even if the count just said otherwise.
  node.missing = items.length < limit ? 0 : Math.max(0, node.item.childCount - shown);
  const last = items.at(-1);
  node.cut = node.missing === 0 || last === undefined ? undefined : { after: positionOf(last), shown };
}

function positionOf({ isFile, nameKey }: DriveItem): ChildPosition {
  return { isFile, nameKey };
}

/** Shows the first children of several folders, with one statement for many folders. */
async function fill(on: On, folders: TreeNode[], shares: readonly number[]): Promise<void> {
  const wanted = folders.flatMap((node, i) => ((shares[i] ?? 0) > 0 ? [{ node, share: shares[i] ?? 0 }] : []));
  for (let at = 0; at < wanted.length; at += foldersPerStatement) {
    const some = wanted.slice(at, at + foldersPerStatement);
    const items = await sequelizeOf(on).query<DriveItem>(some.map(() => firstChildren).join(' UNION ALL '), {
      replacements: some.flatMap(({ node, share }) => [node.item.id, share]),
      type: QueryTypes.SELECT,
      transaction: transactionOf(on),
      model: driveModels(on).DriveItem,
      mapToModel: true,
    });
    const byParent = Map.groupBy(items, ({ parentId }) => parentId);
    for (const { node, share } of some) show(node, (byParent.get(node.item.id) ?? []).sort(inOrder), share);
  }
}

const firstChildren = `(SELECT * FROM drive_items WHERE parent_id = ? AND live = 1 ORDER BY is_file, name_key LIMIT ?)`;

/** SQL promises no order across the parts of a union. */
function inOrder(a: DriveItem, b: DriveItem): number {
  return Number(a.isFile) - Number(b.isFile) || Buffer.compare(a.nameKey, b.nameKey);
}

/**
 * Divides a budget fairly among directories of these sizes (max-min fairness). No directory gets more than it has
 * entries. What small ones leave is divided equally among the larger ones. Among equals, the first ones get the
 * remainder.
 */
export function shareBudget(sizes: readonly number[], budget: number): number[] {
  const shares = sizes.map(() => 0);
  // Each takes its part of what is left, rounded down. What rounding leaves goes to the later ones.
  const order = sizes.map((size, index) => ({ size, index })).sort((a, b) => a.size - b.size || b.index - a.index);
  let left = budget;
  let waiting = order.length;
  for (const { size, index } of order) {
    const share = Math.min(size, Math.floor(left / waiting));
    shares[index] = share;
    left -= share;
    waiting -= 1;
  }
  return shares;
}
