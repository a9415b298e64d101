import type { DomainError } from '../../../base/errors.ts';
import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { cannotBeBeside } from '../rules/names.ts';
import type { RefManifest } from '../types.ts';

/** The refs that a working tree reports. */
export interface TreeTips {
  head: string;
  /** Its branches and tags. */
  refs: Record<string, string>;
  /** Whether the file of packed refs exists. It holds most refs. */
  hasPacked: boolean;
}

type Refs = Pick<RefManifest, 'refs'>;

/** The mirror’s tags that a tree gets: those whose names it does not have, and that can exist beside its own. */
export function newTags({ refs }: Refs, { refs: own }: Refs): Refs {
  const cannotBe = cannotBeBeside(Object.keys(own));
  const isNew = (name: string) => name.startsWith('refs/tags/') && own[name] === undefined && !cannotBe(name);
  return { refs: Object.fromEntries(Object.entries(refs).filter(([name]) => isNew(name))) };
}

/** Throws 422 `GIT_TREE_DAMAGED` if git skips a ref that it cannot read: such a ref was not deleted. */
export function requireReadable(head: string, said: string): void {
  const [, name] = /ignoring broken ref (refs\/(?:heads|tags)\/\S+)/.exec(said) ?? [];
  if (name !== undefined) throw damaged(`${cleanWords(name, 200)} cannot be read`);
  if (head === '') throw damaged('HEAD cannot be read');
}

/**
 * Throws 422 `GIT_TREE_DAMAGED` if saved refs are missing and damage is the likely reason. People do not delete the
 * checked-out branch together with others, or as the last one.
 */
export function requireWhole({ refs: saved }: Refs, { head, refs, hasPacked }: TreeTips): void {
  const gone = Object.keys(saved).filter((name) => /^refs\/(?:heads|tags)\//.test(name) && refs[name] === undefined);
  if (gone.length > 0 && !hasPacked) throw damaged('the file of its packed refs is gone');
  const isBranch = (name: string) => name.startsWith('refs/heads/');
  const isOneOfMany = gone.filter(isBranch).length === 1 && Object.keys(refs).some(isBranch);
  if (gone.includes(head) && !isOneOfMany) throw damaged('its branches are gone, with the one that is checked out');
}

function damaged(what: string): DomainError {
  const remedy = 'Repair it at a terminal; or delete its folder, and a check-out brings back what was saved.';
  return gitError('GIT_TREE_DAMAGED', `The working tree is damaged, and nothing of it was saved: ${what}. ${remedy}`);
}
