import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type DesktopSession, findDesktop } from './session.ts';

/** Who may type: an open page, a caller of the API, or an agent in its turn. */
export type Controller =
  | { kind: 'page'; viewer: string }
  | { kind: 'user'; userId: string }
  | { kind: 'turn'; turnId: string };

/** How long control lasts without being renewed. An open page renews its control more often than that. */
const leaseMs = {
  page: 30_000,
  user: 600_000,
  /** From one tool call to the next. While the agent thinks, a person can take control. */
  turn: 15_000,
} as const;

function textOf(controller: Controller): string {
  if (controller.kind === 'page') return `page:${controller.viewer}`;
  return controller.kind === 'user' ? `user:${controller.userId}` : `turn:${controller.turnId}`;
}

/** Takes control; with `isTakeover` also from another controller. False if another has it, or the session has ended. */
export async function takeControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
  { isTakeover }: { isTakeover: boolean },
): Promise<boolean> {
  const now = new Date();
  const until = new Date(now.getTime() + leaseMs[controller.kind]);
  const free = isTakeover ? '' : 'AND (controller IS NULL OR controller = ? OR controller_until < ?)';
  const { affectedRows } = await execute(
    pool,
    `UPDATE desktop_sessions SET controller = ?, controller_until = ?
      WHERE id = ? AND status IN ('starting', 'running') ${free}`,
    [textOf(controller), until, sessionId, ...(isTakeover ? [] : [textOf(controller), now])],
  );
  return affectedRows > 0;
}

/** Renews control. False if another controller has taken it. */
export async function keepControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
): Promise<boolean> {
  const until = new Date(Date.now() + leaseMs[controller.kind]);
  const sql = 'UPDATE desktop_sessions SET controller_until = ? WHERE id = ? AND controller = ?';
  const { affectedRows } = await execute(pool, sql, [until, sessionId, textOf(controller)]);
  return affectedRows > 0;
}

/** Gives control back. False if this controller did not have it. */
export async function releaseControl(
  { pool }: Pick<Database, 'pool'>,
  sessionId: string,
  controller: Controller,
): Promise<boolean> {
  const sql = 'UPDATE desktop_sessions SET controller = NULL, controller_until = NULL WHERE id = ? AND controller = ?';
  const { affectedRows } = await execute(pool, sql, [sessionId, textOf(controller)]);
  return affectedRows > 0;
}

/** The current controller of a session, if there is one. */
export async function controllerOf(database: Pick<Database, 'pool'>, id: string): Promise<Controller | undefined> {
  return controllerIn(await findDesktop(database, id));
}

/** The controller in this row, unless its lease has ended. */
export function controllerIn(session: DesktopSession | undefined): Controller | undefined {
  const { controller = null, controllerUntil = null } = session ?? {};
  if (controller === null || controllerUntil === null || controllerUntil.getTime() < Date.now()) return undefined;
  const [kind = '', who = ''] = controller.split(/:(.*)/s);
  if (kind === 'page') return { kind, viewer: who };
  return kind === 'turn' ? { kind, turnId: who } : { kind: 'user', userId: who };
}

export function isController(one: Controller, other: Controller): boolean {
  return textOf(one) === textOf(other);
}
