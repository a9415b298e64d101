import type { Request } from 'express';
import { notFound } from '../../base/errors.ts';
import type { Placed } from '../../models/drive/changes.ts';
import { getRepository, type Repository } from '../../models/git/repository.ts';
import type { Operation } from '../../models/operations/operation.ts';
import { authorizeItem } from '../drive/authorizeDrive.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { time } from '../frame/times.ts';

export type PlacedRepository = Repository & { placed: Placed };

/** Part of each deadline, because other orders of the repository may come first. */
const waitMs = 5 * 60_000;

/** How long an order of a repository may take, including the wait for earlier orders. */
export function orderDeadlineMs({ config }: Pick<RouteDeps, 'config'>): number {
  return config.git.timeoutMs + waitMs;
}

/** A repository whose item the caller may see. 404 if it is in the trash, another space's, or another kind of item. */
export async function authorizeRepository(
  deps: RouteDeps,
  req: Request,
  where: { spaceId: string; itemId: string },
): Promise<PlacedRepository> {
  const placed = await authorizeItem(deps, callerOf(req), where);
  if (placed.item.kind !== 'repository') throw notFound('repository');
  return { ...(await getRepository(deps.database, where.spaceId, where.itemId)), placed };
}

/**
 * The work of `makeOnce` for an operation: begins it, and presents its result if it ends in time. Throws its failure.
 */
export function operationWork<Body>(
  deps: RouteDeps,
  req: Request,
  begin: (id: string) => Promise<Operation>,
  present: (result: Record<string, unknown>) => Body,
): (id: string) => Promise<Body | GoesOn> {
  return async (id) => {
    const outcome = await outcomeOf(deps, req, await begin(id));
    return outcome instanceof GoesOn ? outcome : present(outcome.result ?? {});
  };
}

export function presentRepository(repository: PlacedRepository): AnswerOf<'getRepository'> {
  const { itemId, spaceId, url, credentialId, branch, depth, filter, status, errorCode, errorDetail } = repository;
  const { progress, defaultBranch, facts, computerId, treePath, operationId, createdBy, placed } = repository;
  return {
    ...{ id: itemId, spaceId, name: placed.item.name, path: placed.place.path },
    ...{ url, credentialId, branch, depth, filter, status },
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    ...{ progress, defaultBranch, contents: facts, computerId, treePath },
    operationId: status === 'ready' ? null : operationId,
    createdBy,
    createdAt: time(repository.createdAt),
    statusAt: time(repository.statusAt),
  };
}
