import { notFound } from '../../base/errors.ts';
import type { Database } from '../../models/database/database.ts';
import { openAny, openLiving, type Placed } from '../../models/drive/changes.ts';
import { parseContainerId } from '../../models/drive/containers.ts';
import type { Identity } from '../../models/identity/index.ts';
import { authorizeThread } from '../chat/authorizeThread.ts';
import type { Caller } from '../frame/auth/caller.ts';

type Deps = { database: Database; identity: Pick<Identity, 'members'> };
type ItemRef = { spaceId: string; itemId: string };

/**
 * The checks beyond the role, which the access table has checked: the container must belong to this space, and the
 * files of a thread are only for the thread's owner. 404 for any other container, 403 for another member's thread.
 */
export async function authorizeContainer(
  deps: Deps,
  caller: Caller,
  { spaceId, containerId }: { spaceId: string; containerId: string },
): Promise<void> {
  const container = parseContainerId(containerId);
  if (container?.kind === 'drive') return;
  if (container?.kind === 'thread') {
    const thread = await authorizeThread(deps, caller, container.threadId);
    if (thread.spaceId !== spaceId) throw notFound('thread');
  } else if (container?.kind === 'app') {
    const { item } = await openLiving(deps.database, spaceId, container.itemId);
    if (item.kind !== 'app') throw notFound('container');
  } else {
    throw notFound('container');
  }
}

/** An item of the space whose container the caller may use. 404 if it is absent, in another space, or in the trash. */
export function authorizeItem(deps: Deps, caller: Caller, where: ItemRef): Promise<Placed> {
  return authorizeFound(deps, caller, where, openLiving);
}

/** Like `authorizeItem`, but also accepts an item in the trash. */
export function authorizeAnyItem(deps: Deps, caller: Caller, where: ItemRef): Promise<Placed> {
  return authorizeFound(deps, caller, where, openAny);
}

async function authorizeFound(
  deps: Deps,
  caller: Caller,
  { spaceId, itemId }: ItemRef,
  open: typeof openLiving,
): Promise<Placed> {
  const found = await open(deps.database, spaceId, itemId);
  await authorizeContainer(deps, caller, { spaceId, containerId: found.place.containerId });
  return found;
}
