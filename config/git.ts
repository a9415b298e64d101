import { join, resolve } from 'node:path';
import { z } from 'zod';
import { integer } from './kinds.ts';

export const gitSettings = z.object({
  ATRIUM_GIT_DIR: z.string().min(1).optional(),
  ATRIUM_GIT_MAX_MIB: integer(1, 1_048_576).default(5_120),
  ATRIUM_GIT_MAX_TREE_MIB: integer(1, 1_048_576).default(10_240),
  ATRIUM_GIT_MAX_FILES: integer(1, 10_000_000).default(500_000),
  ATRIUM_GIT_MAX_REFS: integer(1, 100_000).default(20_000),
  ATRIUM_GIT_MEMORY_MIB: integer(256, 1_048_576).default(2_048),
  ATRIUM_GIT_MIN_FREE_MIB: integer(0, 1_048_576).default(1_024),
  ATRIUM_GIT_TIMEOUT_MINUTES: integer(1, 1_440).default(60),
  ATRIUM_GIT_SILENCE_SECONDS: integer(1, 3_600).default(30),
  ATRIUM_GIT_SLOTS: integer(1, 100).default(8),
  ATRIUM_GIT_MAX_CLONES: integer(1, 1_000).default(4),
  ATRIUM_GIT_MAX_DRAFTS: integer(1, 1_000).default(20),
  ATRIUM_GIT_DRAFT_SAVE_SECONDS: integer(1, 86_400).default(300),
  ATRIUM_GIT_CA_FILE: z.string().min(1).optional(),
});

type GitEnvironment = z.infer<typeof gitSettings> & { ATRIUM_DATA_DIR: string };

const mebibyte = 1_048_576;

/** Limits of git on our side: what a remote may send, and for how long. */
export function gitConfig(env: GitEnvironment) {
  return Object.freeze({
    /** This machine's mirrors, a cache of the object store. Absolute, because git works in folders of its own. */
    dir: resolve(env.ATRIUM_GIT_DIR ?? join(env.ATRIUM_DATA_DIR, 'git')),
    /** Size of one clone, fetch or push over the network, and of one file that git writes. */
    maxBytes: env.ATRIUM_GIT_MAX_MIB * mebibyte,
    /** Size of a checkout. */
    maxTreeBytes: env.ATRIUM_GIT_MAX_TREE_MIB * mebibyte,
    maxFiles: env.ATRIUM_GIT_MAX_FILES,
    maxRefs: env.ATRIUM_GIT_MAX_REFS,
    /** Address space of one git process. */
    memoryBytes: env.ATRIUM_GIT_MEMORY_MIB * mebibyte,
    /** Free space on the mirrors' disk. With less, nothing is cloned or fetched. */
    minFreeBytes: env.ATRIUM_GIT_MIN_FREE_MIB * mebibyte,
    /** Time limit of one whole operation. */
    timeoutMs: env.ATRIUM_GIT_TIMEOUT_MINUTES * 60_000,
    /** How long a remote may send less than 1,000 bytes a second. */
    silenceSeconds: env.ATRIUM_GIT_SILENCE_SECONDS,
    /** Git operations that a worker runs at once, so that slow git servers hold up no other work. */
    slots: env.ATRIUM_GIT_SLOTS,
    /** Unfinished clones of one space. */
    maxClones: env.ATRIUM_GIT_MAX_CLONES,
    /** Drafts of one repository. */
    maxDrafts: env.ATRIUM_GIT_MAX_DRAFTS,
    /** How often a draft's uncommitted changes are saved while its computer runs. */
    draftSaveMs: env.ATRIUM_GIT_DRAFT_SAVE_SECONDS * 1_000,
    /** CA certificates to trust instead of the system's. */
    caFile: env.ATRIUM_GIT_CA_FILE === undefined ? undefined : resolve(env.ATRIUM_GIT_CA_FILE),
  });
}

export type GitConfig = ReturnType<typeof gitConfig>;
