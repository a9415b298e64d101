import { DomainError } from '../../../base/errors.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { ControlOfCall } from '../../../models/chat/toolCall.ts';
import type { Database } from '../../../models/database/database.ts';
import {
  type Controller,
  controllerOf,
  keepControl,
  releaseControl,
  takeControl,
} from '../../../models/desktops/control.ts';
import { beforehand, type ToolContext } from '../tool.ts';

/** A call's work. Between its steps it calls `stillInControl`, which throws if control was taken away. */
export type Controlled<T> = (stillInControl: () => Promise<void>) => Promise<T>;

/** The screen that a call acts on while it controls a desktop: the desktop itself, or a browser that it shows. */
export interface Screen {
  desktopId: string;
  surface: ControlOfCall['surface'];
  sessionId: string;
}

const last = new Map<string, Promise<unknown>>();

/** Runs the calls with one key one after the other: calls of a step run side by side, but there is only one pointer. */
export async function oneByOne<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = last.get(key) ?? Promise.resolve();
  const mine = before.then(work);
  const over = mine.catch(() => undefined).then(() => void (last.get(key) === over && last.delete(key)));
  last.set(key, over);
  return mine;
}

/**
 * Takes control of a desktop and acts on it. Control is never taken from a person or from another running turn: throws
 * 409 `DESKTOP_CONTROLLED` then, or if a person takes control during the call. The turn keeps control for a while for
 * its next call.
 */
export function inControl<T>(database: Database, screen: Screen, context: ToolContext, act: Controlled<T>): Promise<T> {
  return oneByOne(`${context.turn.id} ${screen.desktopId}`, () => controlled(database, screen, context, act));
}

async function controlled<T>(
  database: Database,
  { desktopId, surface, sessionId }: Screen,
  context: ToolContext,
  act: Controlled<T>,
): Promise<T> {
  const me: Controller = { kind: 'turn', turnId: context.turn.id };
  context.signal.throwIfAborted();
  const from = new Date();
  const note = (outcome: ControlOfCall['outcome']) =>
    context.noteControl({
      surface,
      sessionId,
      outcome,
      from: from.toISOString(),
      until: new Date().toISOString(),
    });
  if (!(await beforehand(take(database, desktopId, me)))) {
    const other = await controllerOf(database, desktopId);
    await note('refused');
    throw new DomainError('conflict', 'DESKTOP_CONTROLLED', `Nothing was done. ${inWords(other)}`);
  }
  let isLost = false;
  try {
    return await act(async () => {
      context.signal.throwIfAborted();
      isLost = !(await keepControl(database, desktopId, me));
      if (!isLost) return;
      const other = await controllerOf(database, desktopId);
      throw new DomainError('conflict', 'DESKTOP_CONTROLLED', `The input was stopped in the middle. ${inWords(other)}`);
    });
  } finally {
    if (context.isGivenUp()) await releaseControl(database, desktopId, me);
    await note(isLost ? 'lost' : 'held');
  }
}

/** Takes control, also from a turn that has ended. */
async function take(database: Database, sessionId: string, me: Controller): Promise<boolean> {
  if (await takeControl(database, sessionId, me, { isTakeover: false })) return true;
  const other = await controllerOf(database, sessionId);
  if (other?.kind !== 'turn') return false;
  const turn = await chatModels(database).Turn.findByPk(other.turnId);
  if (turn !== null && !turn.isTerminal) return false;
  await releaseControl(database, sessionId, other);
  return takeControl(database, sessionId, me, { isTakeover: false });
}

function inWords(controller: Controller | undefined): string {
  if (controller === undefined) return 'The desktop has just ended, or its control has changed. Take a new screenshot.';
  if (controller.kind === 'turn') return 'Another turn controls this desktop. Try again in a few seconds.';
  return 'A person controls this desktop. Ask them to give control back, or wait until they do.';
}
