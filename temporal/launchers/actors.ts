import type { Config } from '../../config/index.ts';
import { appRun } from '../../workflows/apps/appRun.ts';
import { browser } from '../../workflows/browsers/browser.ts';
import { computer } from '../../workflows/computers/computer.ts';
import { spaceDatabase } from '../../workflows/databases/spaceDatabase.ts';
import { desktop } from '../../workflows/desktops/desktop.ts';
import { desktopRecording } from '../../workflows/desktops/recording.ts';
import { repository } from '../../workflows/git/repository.ts';
import { webhookEndpoint } from '../../workflows/webhooks/webhookEndpoint.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { gitTaskQueue, hostTaskQueue, longDatabaseTaskQueue, runTaskQueue, webhookTaskQueue } from '../taskQueues.ts';

/**
 * Tells the workflows of actors that their rows have changed, and starts those that are not running
 * (workflows/actor.ts). The functions `start…` and `interrupt…` take the id and the space of a row.
 */
export function createActorLauncher(kit: LauncherKit, { installation }: Config) {
  const computers = kit.actor(computer, {
    inputOf: (computerId, limits) => ({ computerId, queuePrefix: hostTaskQueue(installation, ''), ...limits }),
    summary: 'Computer',
  });
  const desktops = kit.actor(desktop, {
    inputOf: (sessionId, limits) => ({ sessionId, ...limits }),
    summary: 'Desktop session',
  });
  const recordings = kit.actor(desktopRecording, {
    inputOf: (recordingId, limits) => ({ recordingId, ...limits }),
    summary: 'Recording of a desktop',
  });
  const browsers = kit.actor(browser, {
    inputOf: (sessionId, limits) => ({ sessionId, ...limits }),
    summary: 'Browser session',
  });
  const repositories = kit.actor(repository, {
    inputOf: (itemId, limits) => ({ itemId, gitQueue: gitTaskQueue(installation), ...limits }),
    summary: 'Repository',
  });
  const runs = kit.actor(appRun, {
    inputOf: (runId, limits) => ({ runId, runQueue: runTaskQueue(installation), ...limits }),
    summary: 'Run of an app',
  });
  const databases = kit.actor(spaceDatabase, {
    inputOf: (databaseId, limits) => ({ databaseId, longQueue: longDatabaseTaskQueue(installation), ...limits }),
    summary: 'Database',
  });
  const endpoints = kit.actor(webhookEndpoint, {
    inputOf: (endpointId, limits) => ({ endpointId, webhookQueue: webhookTaskQueue(installation), ...limits }),
    summary: 'Webhooks of an endpoint',
  });
  return {
    startComputer: computers.tell,
    interruptComputer: computers.interrupt,
    runningComputers: computers.running,
    startDesktop: desktops.tell,
    runningDesktops: desktops.running,
    startRecording: recordings.tell,
    runningRecordings: recordings.running,
    startBrowser: browsers.tell,
    runningBrowsers: browsers.running,
    startRepository: repositories.tell,
    interruptRepository: repositories.interrupt,
    startRun: runs.tell,
    runningRuns: runs.running,
    startDatabase: databases.tell,
    startWebhookEndpoint: endpoints.tell,
  };
}

export type ActorLauncher = ReturnType<typeof createActorLauncher>;
