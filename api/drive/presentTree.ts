import type { Cut, TreeNode } from '../../models/drive/fsTree.ts';
import type { components } from '../generated/types.gen.ts';
import { encodeCut } from './cursors.ts';

export interface Tree {
  containerId: string;
  path: string;
  budget: number;
  root: TreeNode;
}

export function presentTree({ containerId, path, budget, root }: Tree) {
  return {
    containerId,
    path,
    budget,
    shown: countShown(root),
    truncated: isCut(root),
    nextCursor: cursorOf(root),
    root: presentNode(root),
  };
}

function presentNode(node: TreeNode): components['schemas']['TreeNode'] {
  const { item, children, missing } = node;
  const name = item.isRoot ? '' : item.name;
  if (item.isFile) return { id: item.id, name, kind: item.kind, size: item.size, contentType: item.contentType };
  return {
    id: item.id,
    name,
    kind: item.kind,
    childCount: item.childCount,
    children: children.map(presentNode),
    missing,
    nextCursor: cursorOf(node),
  };
}

/**
 * The tree as text, for a person or a model: one line per entry, two spaces per level, and a slash after folders. Where
 * entries are left out, it says how many, and the cursor that continues.
 */
export function treeText({ path, root }: Tree): string {
  const lines = [`${path}${path.endsWith('/') || root.item.isFile ? '' : '/'}${note(root)}`];
  const visit = (node: TreeNode, indent: string) => {
    for (const child of node.children) {
      const { item } = child;
      lines.push(`${indent}${printable(item.name)}${item.kind === 'folder' ? '/' : ''}${note(child)}`);
      visit(child, `${indent}  `);
    }
    const cursor = cursorOf(node);
    if (cursor !== null) lines.push(`${indent}… ${node.missing} more (cursor=${cursor})`);
  };
  visit(root, '  ');
  return `${lines.join('\n')}\n`;
}

/** The text after a name. For a folder whose contents are not shown, it is the number of its entries. */
function note({ item, children, missing }: TreeNode): string {
  if (item.isFile) return `  ${readableSize(item.size ?? 0)}`;
  if (item.kind !== 'folder') return `  (${item.kind})`;
  return children.length === 0 && missing > 0 ? `  … ${missing} not shown` : '';
}

/**
 * Names cannot have control characters. The characters here would still mislead a reader about the end of a line or its
 * direction.
 */
function printable(name: string): string {
  return name.replace(/[\u0080-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function readableSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

function cursorOf({ item, cut }: TreeNode): string | null {
  return cut === undefined ? null : encodeCut(item.id, cut satisfies Cut);
}

function countShown(node: TreeNode): number {
  return node.children.reduce((sum, child) => sum + 1 + countShown(child), 0);
}

function isCut(node: TreeNode): boolean {
  return node.missing > 0 || node.children.some(isCut);
}
