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
import { controlChanges } from '../controlChanges.ts';

/** People press buttons. What comes faster is dropped: each order is written, and has every page look. */
const ordersPerSecond = 1;
const ordersAtOnce = 5;

interface Options {
  database: Pick<Database, 'pool'>;
  sessionId: string;
  /** Whether its link is for typing. */
  mayControl: boolean;
}

/** What a page has of the control of its desktop. */
export class PageControl {
  readonly #options: Options;
  readonly #page: Controller = { kind: 'page', viewer: newId('desktopLink') };
  readonly #throttle = new Throttle(ordersPerSecond, ordersAtOnce);
  #orders: Promise<void> = Promise.resolve();
  #isHeld = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Whether it may type now. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Follows an order of the page after those before it. What is none, or fails, changes nothing. */
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
    if (this.#isHeld) controlChanges.emit(sessionId);
  }

  async release(): Promise<void> {
    if (!this.#isHeld) return;
    const { database, sessionId } = this.#options;
    this.#isHeld = false;
    if (await releaseControl(database, sessionId, this.#page)) controlChanges.emit(sessionId);
  }

  /** Keeps what it has. False where that was lost. */
  async keep(): Promise<boolean> {
    if (!this.#isHeld) return true;
    const { database, sessionId } = this.#options;
    // Where that is not known, nobody types.
    const isKept = await keepControl(database, sessionId, this.#page).catch(() => false);
    if (isKept || !this.#isHeld) return true;
    this.#isHeld = false;
    return false;
  }

  /** Hears who is in control, and says it as the page is told. */
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
