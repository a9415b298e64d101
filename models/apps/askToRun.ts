import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { getComputer } from '../computers/computer.ts';
import { isOfEnvironment, type ServingDeps } from '../computers/servingComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type App, lockApp } from './app.ts';
import type { AppComponent } from './manifest.ts';
import { type PlaceOfRuns, placeOfComponent, placeOfRuns } from './placeOfRuns.ts';
import { refusedManifest } from './refusedManifest.ts';
import { requireScopes } from './requireScopes.ts';
import { requireVersionInUse } from './requireVersionInUse.ts';
import { findRun, getRun, type Run, type RunSpec, type RunTrigger, runOfTrigger } from './run.ts';
import { sharedScopes } from './versionRules.ts';

export interface RunRequest {
  app: App;
  /** The id of the run. The same id again returns the same run. */
  id: string;
  component: string | undefined;
  trigger: RunTrigger;
  /** Names the cause. The same key again returns the same run. */
  triggerKey?: string;
  /** The webhook delivery that the run gets as its input. */
  deliveryId?: string;
  actor: Actor & { userId: string };
  /** The API key that asks, and its scopes. Null for a person. */
  apiKeyId: string | null;
  scopes: readonly string[] | null;
}

const maxQueued = 2_000;

/**
 * Adds a run of a component, which a workflow executes. Throws 404, 409 `APP_COMPONENT_UNKNOWN`, `APP_COMPONENT_KIND`
 * or `APP_TOO_MANY_RUNS`, as `placeOfComponent`, 403 `INSUFFICIENT_SCOPE`, and 422 if the manifest cannot be used.
 */
export async function askToRun(deps: ServingDeps, request: RunRequest): Promise<Run> {
  const { database } = deps;
  const { app, id, actor, triggerKey } = request;
  const known = await findRun(database, id);
  if (known !== undefined) return known;
  requireVersionInUse(app);
  if (app.problem !== null) throw refusedManifest(app.problem);
  const component = componentOf(app, request);
  await requireScopes(database, app, component, request);
  const place = await placeOfComponent(deps, app, component, actor);
  const runId = await transaction(database, async (tx) => {
    await lockApp(tx, app);
    const caused = triggerKey === undefined ? undefined : await runOfTrigger(tx, app.id, triggerKey);
    if (caused !== undefined) return caused.id;
    await addRun(tx, { ...request, component, place, userId: actor.userId });
    await appendAudit(tx, app.spaceId, actor, 'app.run', id);
    return id;
  });
  return getRun(database, runId);
}

export type NewRun = Omit<RunRequest, 'component' | 'actor'> & {
  component: AppComponent;
  place: PlaceOfRuns;
  userId: string;
};

/**
 * Adds a run of a locked app. Its rights are those that both its requester and the user who took the version into use
 * have. Throws 409 `APP_TOO_MANY_RUNS`.
 */
export async function addRun(tx: Transaction, run: NewRun): Promise<void> {
  const { app, id, component, place, trigger, triggerKey, deliveryId, userId, apiKeyId, scopes } = run;
  const { name } = component;
  const allowed = sharedScopes([{ scopes }, app.authority]);
  const sql = "SELECT id FROM app_runs WHERE app_id = ? AND component = ? AND status = 'queued' LIMIT ?";
  if ((await select(tx, sql, [app.id, name, maxQueued])).length === maxQueued) {
    const detail = 'Too many runs of this component are waiting. Try again when some have ended.';
    throw new DomainError('conflict', 'APP_TOO_MANY_RUNS', detail, { retryAfterSeconds: 30 });
  }
  await insert(tx, 'app_runs', {
    id,
    appId: app.id,
    itemId: app.itemId,
    spaceId: app.spaceId,
    component: name,
    spec: { ...specOf(component, place), ...(app.versionId !== null && { versionId: app.versionId }) },
    triggerKind: trigger,
    triggerKey: triggerKey ?? null,
    deliveryId: deliveryId ?? null,
    userId,
    apiKeyId,
    scopes: allowed,
    status: 'queued',
    active: 1,
    attempt: 0,
    isStarted: 0,
    createdAt: new Date(),
  });
}

/**
 * Gives a folder's components another computer, from the next run on. Users who may run programs there can read what
 * the components are given, so the caller needs those scopes. Components that name another environment than the
 * computer has do not run there. Throws 403 `INSUFFICIENT_SCOPE`, 409 `APP_ENVIRONMENT_MISMATCH` if that is all of them.
 */
export async function setComputer(
  database: Database,
  app: App,
  computerId: string,
  { actor, by }: { actor: Actor; by: Pick<Authority, 'scopes'> },
): Promise<App> {
  await getComputer(database, app.spaceId, computerId);
  for (const component of app.manifest.components) await requireScopes(database, app, component, by);
  const place = await placeOfRuns(database, app);
  if (place.kind === 'repository' && place.computerId !== computerId) {
    const detail =
      'A repository can only run on the computer of its working tree. To run it elsewhere, clone it again on another computer.';
    throw new DomainError('conflict', 'APP_COMPUTER_FIXED', detail);
  }
  if (place.kind === 'repository' || app.computerId === computerId) return app;
  await requireOneToRun(database, { ...app, computerId });
  await transaction(database, async (tx) => {
    await lockApp(tx, app);
    await execute(tx, 'UPDATE apps SET computer_id = ? WHERE id = ?', [computerId, app.id]);
    await appendAudit(tx, app.spaceId, actor, 'app.computer-set', app.itemId);
  });
  return { ...app, computerId };
}

async function requireOneToRun(database: Database, app: App & { computerId: string }): Promise<void> {
  const { manifest, spaceId, computerId } = app;
  for (const { environment } of manifest.components) {
    if (environment === undefined) return;
    if (await isOfEnvironment(database, { spaceId, computerId, environment }).catch(unlessUnknown)) return;
  }
  if (manifest.components.length === 0) return;
  const detail = 'All components of the app name an environment that this computer does not have.';
  throw new DomainError('conflict', 'APP_ENVIRONMENT_MISMATCH', detail);
}

function unlessUnknown(error: unknown): false {
  if (error instanceof DomainError && error.code === 'ENVIRONMENT_UNKNOWN') return false;
  throw error;
}

/** The limits of a web component: one process at a time, restarted after a day. */
const serving = { timeoutSeconds: 86_400, retry: { attempts: 20, delaySeconds: 1 }, concurrency: 1 };

function specOf(component: AppComponent, place: PlaceOfRuns): RunSpec {
  const { kind, command, cwd, env, secrets, timeoutSeconds, retry, concurrency } = component;
  if (component.kind === 'web') {
    // It serves until its last link is gone. If it ends earlier, it is started again.
    return { kind, command, cwd, env, secrets, ...serving, place, port: component.port };
  }
  return { kind, command, cwd, env, secrets, timeoutSeconds, retry, concurrency, place };
}

function componentOf(
  { manifest: { components } }: App,
  { component: name, deliveryId }: Pick<RunRequest, 'component' | 'deliveryId'>,
): AppComponent {
  const found = components.find((component) =>
    name === undefined ? component.isDefault && component.kind === 'process' : component.name === name,
  );
  if (found === undefined) {
    const detail =
      name === undefined ? 'The app has no default component. Set `component`.' : `The app has no component ${name}.`;
    throw new DomainError('conflict', 'APP_COMPONENT_UNKNOWN', detail);
  }
  const isByDelivery = deliveryId !== undefined;
  if (found.kind === 'web' || isByDelivery !== (found.kind === 'webhook')) {
    const detail = isByDelivery
      ? `The component ${found.name} is no longer a webhook.`
      : `The component ${found.name} cannot be run directly: ${howItRuns[found.kind]}`;
    throw new DomainError('conflict', 'APP_COMPONENT_KIND', detail);
  }
  return found;
}

const howItRuns: Record<AppComponent['kind'], string> = {
  process: '',
  schedule: '',
  webhook: 'send a delivery to its webhook, or replay one.',
  web: 'open a preview of it.',
};
