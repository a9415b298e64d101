import { DomainError, notFound } from '../../../base/errors.ts';
import type { LiveComputers } from '../../../integrations/computers/liveComputers.ts';
import { type App, getAppOf } from '../../../models/apps/app.ts';
import { lookAtApp } from '../../../models/apps/lookAtApp.ts';
import type { ManifestReader } from '../../../models/apps/manifest.ts';
import { getRun, type Run } from '../../../models/apps/run.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { driveContainerId } from '../../../models/drive/containers.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { findByPath } from '../../../models/drive/place.ts';
import type { SecretStore } from '../../../models/secrets/index.ts';
import type { CommonDeps } from '../../deps.ts';

export interface AppToolDeps extends Pick<CommonDeps, 'config' | 'database' | 'workflows'> {
  liveComputers: LiveComputers;
  appManifests: ManifestReader;
  secrets: Pick<SecretStore, 'redactors'>;
}

export interface AppInput {
  app: string;
}

export const appProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  description: 'The path of the app in the drive, such as /report.',
};

/** The app that a call names, with its current manifest. It is always an app of the turn's own space. */
export async function appAt(
  deps: AppToolDeps,
  { spaceId }: Turn,
  { app: path }: AppInput,
  signal: AbortSignal,
): Promise<App> {
  const names = parsePath(path);
  const found = await findByPath(deps.database, { spaceId, containerId: driveContainerId, names });
  if (found === undefined) throw new DomainError('notFound', 'NOT_FOUND', `There is nothing at ${path}.`);
  return lookAtApp(deps, await getAppOf(deps.database, found.item.id), found.item, signal);
}

export async function runOf({ database }: AppToolDeps, { spaceId }: Turn, runId: string): Promise<Run> {
  const run = await getRun(database, runId);
  if (run.spaceId !== spaceId) throw notFound('run');
  return run;
}
