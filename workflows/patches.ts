import { patched } from '@temporalio/workflow';

/**
 * Every change to a workflow that may be half done when a new version begins to run it, with the condition under which
 * its old branch can be deleted (docs/operations.md, "Upgrades"). Names are in histories, so a deleted one is never
 * reused.
 */
const patches = {
  drive:
    'A deleted thread or space has files. Goes with 0.2: a purge lasts hours at most, and the last without files began before 0.1.',
  computers:
    'A deleted space has computers. Goes with 0.3: a purge lasts hours at most, and the last without them began before 0.2.',
  repositories:
    'A deleted space has repositories. Goes with 0.3: a purge lasts hours at most, and the last without them began before 0.2.',
  databases:
    'A deleted space has databases. Goes with 0.3: a purge lasts hours at most, and the last without them began before 0.2.',
  outcomes:
    'A bad end is told in search attributes. Goes with 0.3: the last turn without it began before 0.2, and a turn waits for a week at most.',
  unknownActivities:
    'An activity that a worker does not know is called again. Goes with 0.3: a workflow that failed for one before 0.2 has ended.',
} as const;

export type Patch = keyof typeof patches;

/** Whether this run takes the new branch. */
export function isPatched(patch: Patch): boolean {
  return patched(patch);
}
