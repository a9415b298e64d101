import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { Places } from '../../../base/places.ts';
import { Spool } from '../../../integrations/storage/spool.ts';
import { goneOf } from '../goneOf.ts';

/** Bodies up to this length are received and parsed in memory, without a place. */
export const usualBytes = 2 ** 20;

export interface LargeBodyLimits {
  /** Bodies that have brought more than the usual length, and wait on the disk for their rest or to be parsed. */
  all: number;
  perOwner: number;
  /** A client that sends less than this ends. Otherwise slow clients could keep all places at no cost. */
  leastBytesPerSecond: number;
  /** Over how long that is measured. Only the time counts in which the server was ready to read. */
  windowMs: number;
}

const usualLimits: LargeBodyLimits = { all: 64, perOwner: 4, leastBytesPerSecond: 64 * 2 ** 10, windowMs: 5_000 };

/** A body that has arrived. */
export interface Arrived extends AsyncDisposable {
  bytes: number;
  open(): Readable;
}

/**
 * Receives long bodies onto the disk. A body takes a place only once it has brought more than the usual length, and
 * keeps it only while its client goes on sending: a place is for bytes that are held, not for a client to wait in.
 */
export class LargeBodies {
  readonly #folder: string;
  readonly #limits: LargeBodyLimits;
  readonly #places: Places;

  constructor(folder: string, limits = usualLimits) {
    this.#folder = folder;
    this.#limits = limits;
    this.#places = new Places(limits);
  }

  /** Throws 408 for a slow client, 413 beyond `maxBytes`, and 400 if the client leaves. */
  async receive(req: Request, res: Response, maxBytes: number): Promise<Arrived> {
    const first: Buffer[] = [];
    let bytes = 0;
    await using held = new AsyncDisposableStack();
    let spool: Spool | undefined;
    const client = new Client(req, this.#limits);
    held.defer(() => client.stop());
    try {
      for (let piece = await client.next(); piece !== undefined; piece = await client.next()) {
        bytes += piece.length;
        if (bytes > maxBytes) throw bodyTooLarge(maxBytes);
        if (bytes <= usualBytes) {
          first.push(piece);
          continue;
        }
        if (spool === undefined) {
          held.use(await this.#places.take({ owner: req.caller?.userId ?? '', signal: goneOf(res) }));
          spool = held.use(await Spool.open(this.#folder));
          for (const one of first.splice(0)) await spool.write(one);
          client.expectSpeed();
        }
        await spool.write(piece);
      }
    } catch (error) {
      throw res.closed || req.destroyed ? leftHalfway(error) : error;
    }
    client.stop();
    const kept = held.move();
    const open = () => Readable.from(spool?.read() ?? first, { objectMode: false });
    return { bytes, open, [Symbol.asyncDispose]: () => kept.disposeAsync() };
  }
}

/** Reads a request piece by piece, and measures its client. */
class Client {
  readonly #pieces: AsyncIterator<Buffer>;
  readonly #limits: LargeBodyLimits;
  readonly #tooSlow = Promise.withResolvers<never>();
  #clock: NodeJS.Timeout | undefined;
  /** In this window. */
  #received = 0;
  #waitedMs = 0;
  #waitsSince: number | undefined;

  constructor(req: Request, limits: LargeBodyLimits) {
    // A refusal is sent over the same connection, so the request must not be destroyed.
    this.#pieces = req.iterator({ destroyOnReturn: false });
    this.#limits = limits;
    this.#tooSlow.promise.catch(() => undefined);
  }

  async next(): Promise<Buffer | undefined> {
    this.#waitsSince = performance.now();
    const { value, done } = await Promise.race([this.#pieces.next(), this.#tooSlow.promise]);
    this.#waitedMs += performance.now() - this.#waitsSince;
    this.#waitsSince = undefined;
    if (done === true) return undefined;
    this.#received += value.length;
    return value;
  }

  expectSpeed(): void {
    this.#received = 0;
    this.#waitedMs = 0;
    this.#clock = setInterval(() => this.#look(), this.#limits.windowMs).unref();
  }

  stop(): void {
    clearInterval(this.#clock);
  }

  #look(): void {
    const now = performance.now();
    const waitedMs = this.#waitedMs + (this.#waitsSince === undefined ? 0 : now - this.#waitsSince);
    if (this.#received < (this.#limits.leastBytesPerSecond * waitedMs) / 1_000) this.#tooSlow.reject(tooSlow());
    this.#received = 0;
    this.#waitedMs = 0;
    if (this.#waitsSince !== undefined) this.#waitsSince = now;
  }
}

/** As the body parser reports it. */
export function bodyTooLarge(limit: number): Error {
  return Object.assign(new Error('A body that is too large'), { status: 413, limit });
}

function leftHalfway(cause: unknown): Error {
  return Object.assign(new Error('The client left before its body had arrived', { cause }), { status: 400 });
}

function tooSlow(): DomainError {
  return new DomainError('timeout', 'REQUEST_TIMEOUT', 'The request arrives too slowly.');
}
