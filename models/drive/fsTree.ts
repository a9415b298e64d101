import { QueryTypes } from 'sequelize';
import { type On, sequelizeOf, transactionOf } from '../database/bound.ts';
import type { ChildPosition, DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';

/** Where the list of a folder's children was cut. */
export interface Cut {
  after: ChildPosition;
  /** How many children were shown up to here. */
  shown: number;
}

/** An item as the tree shows it. */
export interface TreeNode {
  item: DriveItem;
  children: TreeNode[];
  /** How many of its children are not shown. */
  missing: number;
  /** Where to go on; undefined when nothing is missing, or nothing is shown. */
  cut: Cut | undefined;
}

export interface TreeOptions {
  /** Entries, the root not counted. */
  budget: number;
  /** Levels below the root. */
  depth: number;
  /** Goes on in the root's children. */
  from?: Cut | undefined;
}

const foldersPerStatement = 100;

/**
 * The tree below an item, breadth before depth: a level is shown as far as the budget goes before the next one is
 * begun, and where it is not enough for a level, each of its folders gets a fair share. It reads what it shows, by the
 * index that lists a folder, and how much is missing from the folders' own counts: it costs the same in a drive of any
 * size.
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
  // Fewer than asked for are all there are, whatever the count said a moment ago.
  node.missing = items.length < limit ? 0 : Math.max(0, node.item.childCount - shown);
  const last = items.at(-1);
  node.cut = node.missing === 0 || last === undefined ? undefined : { after: positionOf(last), shown };
}

function positionOf({ isFile, nameKey }: DriveItem): ChildPosition {
  return { isFile, nameKey };
}

/** Shows the beginning of several folders, many of them by one statement. */
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
 * Divides a budget fairly among directories of these sizes: no directory gets more than it has entries, and what small
 * ones leave is divided equally among the larger ones (max-min fairness). A remainder goes to the first of equals.
 */
export function shareBudget(sizes: readonly number[], budget: number): number[] {
  const shares = sizes.map(() => 0);
  // Each takes its part of what is left, rounded down: what rounding leaves is for those who come later.
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
