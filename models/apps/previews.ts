import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { findLinks, type PortLink } from '../computers/portLink.ts';
import { insertPortLink } from '../computers/portLinks.ts';
import type { ServingDeps } from '../computers/servingComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type App, lockApp } from './app.ts';
import { addRun } from './askToRun.ts';
import type { WebComponent } from './manifest.ts';
import { placeOfComponent } from './placeOfRuns.ts';
import { refusedManifest } from './refusedManifest.ts';
import { requireScopes } from './requireScopes.ts';
import { requireVersionInUse } from './requireVersionInUse.ts';
import { getRun, isActive, lockRun, type Run, runsOf } from './run.ts';

/** A link to a web component, and the run that serves it. */
export interface Preview {
  link: PortLink;
  run: Run;
}

export interface PreviewRequest extends Authority {
  app: App;
  /** The id of the link. The same id again returns the same link. */
  linkId: string;
  /** The id of the new run, if none serves the component already. */
  runId: string;
  component: string | undefined;
  ttlSeconds: number;
  actor: Actor & { userId: string };
}

/** Added to a link's lifetime until `noteServing`, for the start of the process. */
const startSeconds = 90;

/** SQL: a link to run `r` still holds. Without one, nobody needs the run. */
const isLinked = `EXISTS (SELECT 1 FROM port_links l WHERE l.run_id = r.id AND l.revoked_at IS NULL AND l.expires_at > ?)`;
/** SQL: like `isLinked`, for a run `r` of any kind. Only previews need a link. */
export const isStillLinked = `(r.trigger_kind <> 'preview' OR ${isLinked})`;

/**
 * Makes a link to a web component. All links share the run that serves the component. If there is none, this adds one,
 * which a workflow executes. Throws 404, 409 `APP_COMPONENT_UNKNOWN`, and 422 if the manifest cannot be used.
 */
export async function openPreview(deps: ServingDeps, request: PreviewRequest): Promise<Preview> {
  const { database } = deps;
  const { app, linkId, actor, ttlSeconds, apiKeyId, scopes } = request;
  requireVersionInUse(app);
  if (app.problem !== null) throw refusedManifest(app.problem);
  const component = webComponentOf(app, request.component);
  await requireScopes(database, app, component, request);
  const place = await placeOfComponent(deps, app, component, actor);
  const { userId } = actor;
  await transaction(database, async (tx) => {
    await lockApp(tx, app);
    const serving = await servingRun(tx, app.id, component.name);
    const runId = serving?.id ?? request.runId;
    const { computerId } = serving?.spec.place ?? place;
    const port = serving?.spec.port ?? component.port;
    const fields = {
      id: linkId,
      spaceId: app.spaceId,
      computerId,
      port,
      createdBy: userId,
      apiKeyId,
      ttlSeconds: ttlSeconds + startSeconds,
      runId,
    };
    if (!(await insertPortLink(tx, fields, actor)) || serving !== undefined) return;
    await addRun(tx, { app, id: runId, component, place, trigger: 'preview', userId, apiKeyId, scopes });
    await appendAudit(tx, app.spaceId, actor, 'app.run', runId);
  });
  return getPreview(database, app, linkId);
}

/** Starts a link's lifetime once its process serves, so that the start does not shorten it. */
export async function noteServing(
  { pool }: Pick<Database, 'pool'>,
  { link }: Preview,
  ttlSeconds: number,
): Promise<void> {
  const sql = 'UPDATE port_links SET expires_at = ? WHERE id = ? AND revoked_at IS NULL';
  await execute(pool, sql, [new Date(Date.now() + ttlSeconds * 1_000), link.id]);
}

/** Throws 404. */
export async function getPreview(database: Database, app: Pick<App, 'id'>, linkId: string): Promise<Preview> {
  const [link] = await findLinks(database, 'l.id = ?', [linkId]);
  const run = link?.runId == null ? undefined : await getRun(database, link.runId);
  if (link === undefined || run?.appId !== app.id) throw notFound('link');
  return { link, run };
}

/** The valid links of an app, newest first. */
export async function listPreviews(database: Database, app: Pick<App, 'id' | 'spaceId'>): Promise<Preview[]> {
  const links = await findLinks(
    database,
    'l.space_id = ? AND l.run_id IS NOT NULL AND l.revoked_at IS NULL AND l.expires_at > ? ORDER BY l.id DESC',
    [app.spaceId, new Date()],
  );
  const runs = new Map(
    (
      await runsOf(
        database,
        links.flatMap(({ runId }) => runId ?? []),
      )
    ).map((run) => [run.id, run]),
  );
  return links.flatMap((link) => {
    const run = runs.get(link.runId ?? '');
    return run?.appId === app.id ? [{ link, run }] : [];
  });
}

/** True unless the run is a preview to which no link holds. */
export async function isLookedAt(tx: Transaction, run: Pick<Run, 'id' | 'triggerKind'>): Promise<boolean> {
  if (run.triggerKind !== 'preview') return true;
  const sql = `SELECT 1 FROM app_runs r WHERE r.id = ? AND ${isLinked}`;
  return (await select(tx, sql, [run.id, new Date()])).length > 0;
}

/** The run that serves a component, or will. A run without links is about to end and does not count. */
async function servingRun(tx: Transaction, appId: string, component: string): Promise<Run | undefined> {
  const [row] = await select<{ id: string }>(
    tx,
    `SELECT r.id FROM app_runs r WHERE r.app_id = ? AND r.component = ? AND r.status IN ('queued', 'running')
      AND r.trigger_kind = 'preview' AND r.cancel_requested_at IS NULL AND ${isLinked} ORDER BY r.id DESC LIMIT 1`,
    [appId, component, new Date()],
  );
  const run = row && (await lockRun(tx, row.id));
  // The run may have ended since the query, and its links with it.
  return run !== undefined && isActive(run) ? run : undefined;
}

function webComponentOf({ manifest: { components } }: App, name: string | undefined): WebComponent {
  const web = components.filter((component) => component.kind === 'web');
  const found = web.find((component) => (name === undefined ? component.isDefault : component.name === name));
  if (found !== undefined) return found;
  const detail =
    name === undefined
      ? 'The app has no default web component. Set `component`.'
      : `The app has no web component ${name}.`;
  throw new DomainError('conflict', 'APP_COMPONENT_UNKNOWN', detail);
}
