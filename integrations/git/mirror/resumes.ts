import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { writeDurably } from '../../../disk/durable.ts';
import { isUnexplained } from '../rules/describeFailure.ts';
import type { GitFailure } from '../rules/failures.ts';
import type { Git } from './git.ts';
import { incomplete } from './missing.ts';

/** So often in a row a clone may go on from the same objects and get no further. */
const mostInVain = 3;

interface Resumes {
  /** How many objects the last one went on from. */
  kept: number;
  inVain: number;
}

const fileOf = (git: Git) => join(git.home, 'resumes.json');

/**
 * Notes that a clone is about to go on from so many objects. True where that has been in vain too often, for whatever
 * reason: a server may break off whenever it is asked for what is missing, or our process end of it.
 */
export async function isStuck(git: Git, kept: number): Promise<boolean> {
  const before = await readResumes(git);
  const inVain = before !== undefined && kept <= before.kept ? before.inVain + 1 : 0;
  await writeDurably(fileOf(git), JSON.stringify({ kept, inVain } satisfies Resumes));
  return inVain >= mostInVain;
}

/** The clone is done, or is begun anew. */
export async function forgetResumes(git: Git): Promise<void> {
  await rm(fileOf(git), { force: true });
}

async function readResumes(git: Git): Promise<Resumes | undefined> {
  try {
    return JSON.parse(await readFile(fileOf(git), 'utf8')) as Resumes;
  } catch {
    return undefined;
  }
}

/** Failures of the way to the remote, of the machine, or of who has asked: what has come is not to blame. */
const outside: readonly string[] = [
  'GIT_REMOTE_FAILED',
  'GIT_REMOTE_TOO_SLOW',
  'GIT_REMOTE_NOT_FOUND',
  'GIT_REMOTE_FORBIDDEN',
  'GIT_AUTHENTICATION_FAILED',
  'GIT_FAILED',
  'GIT_DISK_FULL',
  'GIT_NOT_INSTALLED',
] satisfies GitFailure[];

/** Whether a clone that has failed so may yet go on from what it has. */
export function mayGoOnAfter(error: unknown): boolean {
  if (!(error instanceof DomainError)) return (error as NodeJS.ErrnoException).code === 'ENOSPC';
  return outside.includes(error.code) && !isUnexplained(error) && error.cause !== incomplete;
}

/** Whether git has found objects that it does not take. */
export function isRefused(error: unknown): boolean {
  return error instanceof DomainError && error.code === ('GIT_OBJECTS_REFUSED' satisfies GitFailure);
}
