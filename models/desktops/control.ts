import type { ResultSetHeader } from 'mysql2/promise';
import type { Database } from '../database.ts';
import { type DesktopSession, findDesktop } from './session.ts';

/** Whoever may type: one at a time, a page that somebody has open or a caller of the API. */
export type Controller = { kind: 'page'; viewer: string } | { kind: 'user'; userId: string };

/** A page says that it is there more often than that; one that has gone without a word is not waited for longer. */
const pageMs = 30_000;
const userMs = 600_000;

function textOf(controller: Controller): string {
  return controller.kind === 'page' ? `page:${controller.viewer}` : `user:${controller.userId}`;
}

/** Takes the control, from whoever has it where `isTakeover`. False where another has it, or the session has ended. */
export async function takeControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
  { isTakeover }: { isTakeover: boolean },
): Promise<boolean> {
  const now = new Date();
  const until = new Date(now.getTime() + (controller.kind === 'page' ? pageMs : userMs));
  const free = isTakeover ? '' : 'AND (controller IS NULL OR controller = ? OR controller_until < ?)';
  const [{ affectedRows }] = await pool.query<ResultSetHeader>(
    `UPDATE desktop_sessions SET controller = ?, controller_until = ?
      WHERE id = ? AND status IN ('starting', 'running') ${free}`,
    [textOf(controller), until, sessionId, ...(isTakeover ? [] : [textOf(controller), now])],
  );
  return affectedRows > 0;
}

/** Keeps it. False where it was taken. */
export async function keepControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
): Promise<boolean> {
  const until = new Date(Date.now() + (controller.kind === 'page' ? pageMs : userMs));
  const [{ affectedRows }] = await pool.query<ResultSetHeader>(
    'UPDATE desktop_sessions SET controller_until = ? WHERE id = ? AND controller = ?',
    [until, sessionId, textOf(controller)],
  );
  return affectedRows > 0;
}

/** Gives it back. False where it was not this one’s. */
export async function releaseControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
): Promise<boolean> {
  const [{ affectedRows }] = await pool.query<ResultSetHeader>(
    'UPDATE desktop_sessions SET controller = NULL, controller_until = NULL WHERE id = ? AND controller = ?',
    [sessionId, textOf(controller)],
  );
  return affectedRows > 0;
}

/** Who has it now; undefined where nobody does. */
export async function controllerOf(database: Pick<Database, 'pool'>, id: string): Promise<Controller | undefined> {
  return controllerIn(await findDesktop(database, id));
}

/** Who has it by this row. */
export function controllerIn(session: DesktopSession | undefined): Controller | undefined {
  const { controller = null, controllerUntil = null } = session ?? {};
  if (controller === null || controllerUntil === null || controllerUntil.getTime() < Date.now()) return undefined;
  const [kind = '', who = ''] = controller.split(/:(.*)/s);
  return kind === 'page' ? { kind, viewer: who } : { kind: 'user', userId: who };
}

export function isController(one: Controller, other: Controller): boolean {
  return textOf(one) === textOf(other);
}
