import { type Actor, appendAudit } from '../audit.ts';
import { getComputer } from '../computers/computer.ts';
import { type Database, transaction } from '../database.ts';
import { DomainError, notFound } from '../errors.ts';
import { insufficientScope, may } from '../identity/authority.ts';
import { execute, insert, select } from '../sql.ts';
import type { App } from './app.ts';
import type { AppComponent } from './manifest.ts';
import { type PlaceOfRuns, placeOfRuns } from './placeOfRuns.ts';
import { refusedManifest } from './refusedManifest.ts';
import { findRun, getRun, type Run, type RunSpec, type RunTrigger, runOfTrigger } from './run.ts';

export interface RunRequest {
  app: App;
  /** The run's. The same one again is the same run. */
  id: string;
  component: string | undefined;
  trigger: RunTrigger;
  /** What names the cause: the same one again causes nothing. */
  triggerKey?: string;
  actor: Actor & { userId: string };
  /** What the run may do, as far as a key has asked for it. */
  apiKeyId: string | null;
  scopes: readonly string[] | null;
}

const maxQueued = 2_000;

/**
 * Writes that a component is to be run; a workflow runs it. Throws 404, 409 `APP_COMPONENT_UNKNOWN` or
 * `APP_TOO_MANY_RUNS`, and 422 where the manifest cannot be used.
 */
export async function askToRun(database: Database, request: RunRequest): Promise<Run> {
  const { app, id, actor, trigger, triggerKey, apiKeyId, scopes } = request;
  const known = await findRun(database, id);
  if (known !== undefined) return known;
  if (app.problem !== null) throw refusedManifest(app.problem);
  const component = componentOf(app, request.component);
  const { name } = component;
  if (component.secrets.length > 0 && !may(request, 'secrets:read')) {
    throw insufficientScope('secrets:read', ', and this component is given secrets');
  }
  const spec = specOf(component, await placeOfRuns(database, app));
  const runId = await transaction(database, async (tx) => {
    await lockApp(tx, app);
    const caused = triggerKey === undefined ? undefined : await runOfTrigger(tx, app.id, triggerKey);
    if (caused !== undefined) return caused.id;
    const sql = "SELECT id FROM app_runs WHERE app_id = ? AND component = ? AND status = 'queued' LIMIT ?";
    if ((await select(tx, sql, [app.id, name, maxQueued])).length === maxQueued) {
      const detail = 'Too many runs of this component wait. Try again when some of them have ended.';
      throw new DomainError('conflict', 'APP_TOO_MANY_RUNS', detail, { retryAfterSeconds: 30 });
    }
    await insert(tx, 'app_runs', {
      id,
      app_id: app.id,
      item_id: app.itemId,
      space_id: app.spaceId,
      component: name,
      spec: JSON.stringify(spec),
      trigger_kind: trigger,
      trigger_key: triggerKey ?? null,
      user_id: actor.userId,
      api_key_id: apiKeyId,
      scopes: scopes && JSON.stringify(scopes),
      status: 'queued',
      active: 1,
      attempt: 0,
      is_started: 0,
      created_at: new Date(),
    });
    await appendAudit(tx, app.spaceId, actor, 'app.run', id);
    return id;
  });
  return getRun(database, runId);
}

/** Gives a folder's components another computer, from the next run on. */
export async function setComputer(database: Database, app: App, computerId: string, actor: Actor): Promise<App> {
  await getComputer(database, app.spaceId, computerId);
  const place = await placeOfRuns(database, app);
  if (place.kind === 'repository' && place.computerId !== computerId) {
    const detail = 'A repository runs where its working tree is. Clone it again to have it on another computer.';
    throw new DomainError('conflict', 'APP_COMPUTER_FIXED', detail);
  }
  if (place.kind === 'repository' || app.computerId === computerId) return app;
  await transaction(database, async (tx) => {
    await lockApp(tx, app);
    await execute(tx, 'UPDATE apps SET computer_id = ? WHERE id = ?', [computerId, app.id]);
    await appendAudit(tx, app.spaceId, actor, 'app.computer-set', app.itemId);
  });
  return { ...app, computerId };
}

/** Orders what is asked of one app, and of what waits. Throws 404 for one that was removed. */
async function lockApp(tx: Parameters<typeof select>[0], { id }: App): Promise<void> {
  const rows = await select(tx, 'SELECT id FROM apps WHERE id = ? AND live = 1 FOR UPDATE', [id]);
  if (rows.length === 0) throw notFound('app');
}

function specOf(component: AppComponent, place: PlaceOfRuns): RunSpec {
  const { kind, command, cwd, env, secrets, timeoutSeconds, retry, concurrency } = component;
  return { kind, command, cwd, env, secrets, timeoutSeconds, retry, concurrency, place };
}

function componentOf({ manifest: { components } }: App, name: string | undefined): AppComponent {
  const found = components.find((component) =>
    name === undefined ? component.isDefault && component.kind === 'process' : component.name === name,
  );
  if (found !== undefined) return found;
  const detail =
    name === undefined
      ? 'No component of the app is the default. Say which one is to run.'
      : `The app has no component ${name}.`;
  throw new DomainError('conflict', 'APP_COMPONENT_UNKNOWN', detail);
}
