import type { TreeRef } from '../treeTypes.ts';

/** Of what goes into a tree and out of it, of the tree itself until it is whole, and of what is in no commit of it. */
export type Box = 'in' | 'out' | 'new' | 'wip';

export const allBoxes: readonly Box[] = ['in', 'out', 'new', 'wip'];

/** Below the home, where programs keep what may be lost. */
export function boxOf({ itemId }: TreeRef, which: Box): string {
  return `.cache/atrium/git/${itemId}-${which}`;
}
