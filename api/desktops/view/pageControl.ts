import { newId } from '../../../base/ids.ts';
import type { Database } from '../../../models/database/database.ts';
import {
  type Controller,
  isController,
  keepControl,
  releaseControl,
  takeControl,
} from '../../../models/desktops/control.ts';
import { Throttle } from '../../frame/connectionLimits.ts';
import { desktopChanges } from '../look.ts';

/** More than people send by pressing buttons. Each order is written to the database, and makes every page look. */
const ordersPerSecond = 1;
const ordersAtOnce = 5;

interface Options {
  database: Pick<Database, 'pool'>;
  sessionId: string;
  /** Whether the page's link allows typing. */
  mayControl: boolean;
}

/** One page's control over its desktop. */
export class PageControl {
  readonly #options: Options;
  readonly #page: Controller = { kind: 'page', viewer: newId('desktopLink') };
  readonly #throttle = new Throttle(ordersPerSecond, ordersAtOnce);
  #orders: Promise<void> = Promise.resolve();
  #isHeld = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Whether the page may type now. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Follows the page's orders one after the other. An invalid or failed order changes nothing. */
  order(data: Buffer): Promise<void> {
    if (this.#options.mayControl && this.#throttle.take()) {
      this.#orders = this.#orders.then(() => this.#follow(data)).catch(() => undefined);
    }
    return this.#orders;
  }

  async take(how: { isTakeover: boolean }): Promise<void> {
    if (this.#isHeld || !this.#options.mayControl) return;
    const { database, sessionId } = this.#options;
    this.#isHeld = await takeControl(database, sessionId, this.#page, how);
    if (this.#isHeld) desktopChanges.emit(sessionId);
  }

  async release(): Promise<void> {
    if (!this.#isHeld) return;
    const { database, sessionId } = this.#options;
    this.#isHeld = false;
    if (await releaseControl(database, sessionId, this.#page)) desktopChanges.emit(sessionId);
  }

  /** Renews the control that the page has. False when it was lost. */
  async keep(): Promise<boolean> {
    if (!this.#isHeld) return true;
    const { database, sessionId } = this.#options;
    // If the database does not answer, the page must not type.
    const isKept = await keepControl(database, sessionId, this.#page).catch(() => false);
    if (isKept || !this.#isHeld) return true;
    this.#isHeld = false;
    return false;
  }

  /** Notes who is in control, and returns the word for the page. */
  note(controller: Controller | undefined): 'none' | 'you' | 'other' | 'agent' {
    this.#isHeld = controller !== undefined && isController(controller, this.#page);
    if (controller === undefined) return 'none';
    if (this.#isHeld) return 'you';
    return controller.kind === 'turn' ? 'agent' : 'other';
  }

  async #follow(data: Buffer): Promise<void> {
    const { type } = JSON.parse(data.toString('utf8')) as { type?: unknown };
    if (type === 'take') await this.take({ isTakeover: true });
    if (type === 'release') await this.release();
  }
}
