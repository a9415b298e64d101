import type { Request } from 'express';
import { notFound } from '../../base/errors.ts';
import type { Placed } from '../../models/drive/changes.ts';
import { getRepository, type Repository } from '../../models/git/repository.ts';
import { authorizeItem } from '../drive/authorizeDrive.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { time } from '../frame/times.ts';

export type PlacedRepository = Repository & { placed: Placed };

/** A repository whose item the caller may see. 404 when it is in the trash, another space's, or an item of another kind. */
export async function authorizeRepository(
  deps: RouteDeps,
  req: Request,
  where: { spaceId: string; itemId: string },
): Promise<PlacedRepository> {
  const placed = await authorizeItem(deps, callerOf(req), where);
  if (placed.item.kind !== 'repository') throw notFound('repository');
  return { ...(await getRepository(deps.database, where.spaceId, where.itemId)), placed };
}

export function presentRepository(repository: PlacedRepository): AnswerOf<'getRepository'> {
  const { itemId, spaceId, url, credentialId, branch, depth, filter, status, errorCode, errorDetail } = repository;
  const { progress, defaultBranch, facts, computerId, treePath, operationId, createdBy, placed } = repository;
  return {
    id: itemId,
    spaceId,
    name: placed.item.name,
    path: placed.place.path,
    url,
    credentialId,
    branch,
    depth,
    filter,
    status,
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    progress,
    defaultBranch,
    contents: facts,
    computerId,
    treePath,
    operationId: status === 'ready' ? null : operationId,
    createdBy,
    createdAt: time(repository.createdAt),
    statusAt: time(repository.statusAt),
  };
}
