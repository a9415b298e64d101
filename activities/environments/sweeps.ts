import { cancelBuild, failBuild, type LostBuild, lostBuilds } from '../../models/environments/builds/builds.ts';
import { forgetLayers, letGo, type OldVersion, oldVersions } from '../../models/environments/letGo.ts';
import type { CommonDeps } from '../deps.ts';
import { graceBefore, purgeOlder, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';

export function createEnvironmentSweeps(
  deps: CommonDeps,
  removeBuilder: (which: { versionId: string }) => Promise<void>,
) {
  const { config, database, logger } = deps;
  return {
    /** Ends builds whose workflow is gone. Their operations have ended without them. */
    sweepBuilds: (): Promise<SweepReport> =>
      sweepEach<LostBuild>({
        logger,
        before: graceBefore(config),
        page: (page) => lostBuilds(database, page),
        async look({ id, isCancelled }) {
          await removeBuilder({ versionId: id });
          if (isCancelled === 1) await cancelBuild(deps, id);
          else await failBuild(deps, id, 'WORKFLOW_LOST');
          return 'ended';
        },
      }),

    /** Removes versions of environments that nothing needs any more. */
    letGoVersions: (): Promise<SweepReport> =>
      sweepEach<OldVersion>({
        logger,
        before: graceBefore(config),
        page: (page) => oldVersions(database, page),
        look: async (version) => ((await letGo(database, version)) ? 'ended' : 'left'),
      }),

    /** Forgets the results of steps that no build has used for long. */
    forgetLayers: purgeOlder(config.environments.layerMs, (before, onBatch) => forgetLayers(database, before, onBatch)),
  };
}

export const environmentSweeps = {
  rescue: ['sweepBuilds'],
  upkeep: ['letGoVersions', 'forgetLayers'],
} as const satisfies Sweeps<keyof ReturnType<typeof createEnvironmentSweeps>>;
