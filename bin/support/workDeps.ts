import { createMetering } from '../../activities/billing/metering.ts';
import { AttachmentReader } from '../../activities/chat/context/attachmentReader.ts';
import type { ChatDeps } from '../../activities/chat/deps.ts';
import { StepHolds } from '../../activities/chat/stepHolds.ts';
import { StopWatch } from '../../activities/chat/stopWatch.ts';
import type { MainDeps } from '../../activities/main.ts';
import { createTools } from '../../activities/tools/index.ts';
import { createAppManifests } from '../../integrations/apps/manifests.ts';
import { createModelRunner } from '../../integrations/chat/modelRunner.ts';
import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { RunningEgressProxy } from '../../integrations/egress/startEgressProxy.ts';
import { createGitMirrors } from '../../integrations/git/createGitMirrors.ts';
import { createGitTrees } from '../../integrations/git/trees/createGitTrees.ts';
import { createMailer } from '../../integrations/mail/smtp.ts';
import { createPushFetch } from '../../integrations/push/pushFetch.ts';
import { createPushSender } from '../../integrations/push/pushSender.ts';
import { createMirrorRecords } from '../../models/git/mirrorRecords.ts';
import type { Launcher } from '../../temporal/launcher.ts';
import type { Services } from './services.ts';

/** The dependencies of all activities of a worker. */
export function mainDeps(
  services: Services,
  launcher: Launcher,
  liveComputers: LiveComputers,
  proxy: RunningEgressProxy,
): MainDeps {
  const { config, database, storage, identity } = services;
  return {
    ...services,
    ...chatDeps(services, launcher, liveComputers),
    mails: identity.mails,
    mailer: config.signIn.mail && createMailer(config.signIn.mail),
    liveComputers,
    gitMirrors: createGitMirrors({
      ...services,
      proxy,
      records: createMirrorRecords({ database, store: storage, quotaBytes: config.drive.quotaBytes }),
      ownerOf: (spaceId) => services.egressRules.owner(spaceId, 'git'),
    }),
    arrivals: identity.arrivals,
  };
}

/** The dependencies of a turn's steps, in any process. */
export function chatDeps(services: Services, launcher: Launcher, liveComputers: LiveComputers) {
  const { config, logger, database, catalogue, storage, documents, identity, push, egressGuard } = services;
  const gitTrees = createGitTrees(liveComputers, config.git);
  const appManifests = createAppManifests({ ...services, liveComputers });
  return {
    ...services,
    workflows: launcher,
    modelRunner: createModelRunner({ config, catalogue }),
    metering: createMetering({ database, config, catalogue }),
    stopWatch: new StopWatch({ logger, database }),
    // A silent process loses its steps as a silent worker loses its activities.
    stepHolds: new StepHolds({ logger, database, holdMs: config.temporal.heartbeatTimeoutMs }),
    tools: createTools({ ...services, liveComputers, gitTrees, appManifests, workflows: launcher }),
    attachments: new AttachmentReader(storage, documents),
    members: identity.members,
    appManifests,
    gitTrees,
    pushSender: createPushSender({
      keys: push.keys,
      subject: config.push.subject,
      fetch: createPushFetch(egressGuard),
      logger,
    }),
  } satisfies ChatDeps & Pick<MainDeps, 'appManifests' | 'gitTrees'>;
}
