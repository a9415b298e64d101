import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';
import type { PlacedRepository } from './authorizeRepository.ts';

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
