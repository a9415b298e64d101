import { asNotFound, DomainError, notFound } from '../../base/errors.ts';
import { idPrefixes } from '../../base/ids.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Database } from '../../models/database/database.ts';
import type { Identity } from '../../models/identity/index.ts';
import { authorizeSpace, isStillSignedIn } from '../frame/auth/authorizeSpace.ts';
import type { Caller } from '../frame/auth/caller.ts';

type Deps = { database: Database; identity: Pick<Identity, 'members'> };

/** Finds a thread for its owner: 404 if its space is not the caller's, 403 if another member owns it. */
export async function authorizeThread(deps: Deps, caller: Caller, threadId: string): Promise<Thread> {
  const thread = await chatModels(deps.database).Thread.open(threadId);
  if (thread === null) throw notFound('thread');
  return authorizeOpen(deps, caller, thread);
}

async function authorizeOpen(deps: Deps, caller: Caller, thread: Thread): Promise<Thread> {
  await authorizeSpace(deps, caller, thread.spaceId, 'viewer').catch((error: unknown) => {
    throw asNotFound(error, 'thread');
  });
  if (thread.userId !== caller.userId) throw notThreadOwner();
  return thread;
}

/** Finds a turn, authorized through its thread. */
export async function authorizeTurn(deps: Deps, caller: Caller, turnId: string): Promise<Turn> {
  const turn = await chatModels(deps.database).Turn.findByPk(turnId);
  if (turn === null) throw notFound('turn');
  await authorizeThread(deps, caller, turn.threadId).catch((error: unknown) => {
    throw asNotFound(error, 'turn');
  });
  return turn;
}

/** Whether the reader of a turn's stream may continue to read. */
export async function mayStillRead(
  deps: { identity: Pick<Identity, 'members' | 'sessions' | 'keys'> },
  caller: Caller,
  turn: Pick<Turn, 'spaceId'>,
): Promise<boolean> {
  if (!(await isStillSignedIn(deps, caller))) return false;
  return (await deps.identity.members.access(turn.spaceId, caller.userId)) !== undefined;
}

type NamingDeps = Deps & { identity: Pick<Identity, 'users'> };

/**
 * Finds a thread by its id or its client's chat id; undefined for a chat id without a message so far. 403 for another
 * user's thread, 404 if the caller is no longer a member.
 */
export async function authorizeNamedThread(
  deps: NamingDeps,
  caller: Caller,
  name: string,
  spaceId: string | undefined,
): Promise<Thread | undefined> {
  const thread = await chatModels(deps.database).Thread.open(name);
  if (thread !== null && thread.userId !== caller.userId) throw notThreadOwner();
  if (thread !== null) return authorizeOpen(deps, caller, thread);
  return threadOfClient(deps, caller, name, spaceId);
}

/**
 * Like {@link authorizeNamedThread}, for operations on threads: 404 for an unknown thread, and for another tenant's.
 */
export async function authorizeListedThread(
  deps: NamingDeps,
  caller: Caller,
  name: string,
  spaceId: string | undefined,
): Promise<Thread> {
  const thread = await findListedThread(deps, caller, name, spaceId);
  if (thread === undefined) throw notFound('thread');
  return thread;
}

/** Like {@link authorizeListedThread}, but undefined for a chat id without a message so far. */
export async function findListedThread(
  deps: NamingDeps,
  caller: Caller,
  name: string,
  spaceId: string | undefined,
): Promise<Thread | undefined> {
  const thread = await chatModels(deps.database).Thread.open(name);
  if (thread !== null) return authorizeOpen(deps, caller, thread);
  if (name.startsWith(`${idPrefixes.thread}_`)) throw notFound('thread');
  return threadOfClient(deps, caller, name, spaceId);
}

/** The thread with this chat id of the caller's client, in the named space or the caller's default one. */
async function threadOfClient(
  deps: NamingDeps,
  caller: Caller,
  name: string,
  spaceId: string | undefined,
): Promise<Thread | undefined> {
  const { Thread, ThreadAlias } = chatModels(deps.database);
  const space = spaceId ?? (await defaultSpaceOf(deps, caller));
  await authorizeSpace(deps, caller, space, 'viewer');
  const alias = await ThreadAlias.findOne({ where: { userId: caller.userId, spaceId: space, alias: name } });
  const thread = alias && (await Thread.open(alias.threadId));
  return thread === null ? undefined : authorizeOpen(deps, caller, thread);
}

/** The caller's default space, for a request that names none. */
export async function defaultSpaceOf(
  { identity }: { identity: Pick<Identity, 'users'> },
  caller: Caller,
): Promise<string> {
  const spaceId = await identity.users.defaultSpaceId(caller.userId);
  if (spaceId !== undefined) return spaceId;
  throw new DomainError('unprocessable', 'SPACE_REQUIRED', 'You have no default space. Set `spaceId`.');
}

/** 403 for another user's thread. `authorizeNamedThread` throws it even if the caller cannot see the thread's space. */
function notThreadOwner(): DomainError {
  return new DomainError('forbidden', 'NOT_THREAD_OWNER', 'This thread belongs to another user.');
}
