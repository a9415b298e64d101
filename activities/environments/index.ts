import { DomainError } from '../../base/errors.ts';
import { askToDelete } from '../../models/computers/wishes.ts';
import { type BuildStep, cancelBuild, failBuild, nextOfBuild } from '../../models/environments/builds/builds.ts';
import { builderOf, findVersion } from '../../models/environments/version.ts';
import type { EnvironmentDeps } from './deps.ts';
import { createRunStep } from './runStep.ts';
import { createEnvironmentSweeps, environmentSweeps } from './sweeps.ts';

interface Which {
  versionId: string;
}

function createEnvironmentActivities(deps: EnvironmentDeps) {
  return {
    ...createEnvironmentSweeps(deps, removeBuilder),
    lookAtBuild: ({ versionId }: Which): Promise<BuildStep> => nextOfBuild(deps, versionId),
    failBuild: ({ versionId, code }: Which & { code: string }): Promise<void> => failBuild(deps, versionId, code),
    cancelBuild: ({ versionId }: Which): Promise<void> => cancelBuild(deps, versionId),
    removeBuilder,
  };

  /** Deletes the computer of a build, if it has one. */
  async function removeBuilder({ versionId }: Which): Promise<void> {
    const version = await findVersion(deps.database.pool, versionId);
    if (version === undefined) return;
    const actor = { userId: version.createdBy, credentialId: null, address: null };
    try {
      const { operation } = await askToDelete(deps, { ...builderOf(version), actor });
      if (operation !== undefined) await deps.workflows.startOperation(operation);
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'notFound') throw error;
    }
  }
}

/** On the queue of runs, because a step takes as long as its program. */
export function createStepQueueActivities(deps: EnvironmentDeps) {
  return { runEnvironmentStep: createRunStep(deps) };
}

export const environments = { create: createEnvironmentActivities, sweeps: environmentSweeps };
