import type { App } from '../../models/apps/app.ts';
import { placeOfRuns } from '../../models/apps/placeOfRuns.ts';
import type { Database } from '../../models/database/database.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

export async function presentApp(database: Database, app: App, path: string): Promise<AnswerOf<'getApp'>> {
  const { itemId, spaceId, manifest, problem, versionId, waitingId: waitingVersionId, createdBy, createdAt } = app;
  const { kind, computerId, folder } = await placeOfRuns(database, app);
  const { name, components } = manifest;
  const made = { createdBy, createdAt: time(createdAt) };
  const versions = { versionId, waitingVersionId };
  return { id: itemId, spaceId, name, path, kind, computerId, folder, components, problem, ...versions, ...made };
}
