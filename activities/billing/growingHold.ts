import type { ModelPart } from '../../integrations/chat/modelCall.ts';
import { type Allowance, type CallRequest, growHold } from '../../models/billing/gate.ts';
import { ceilingOf } from '../../models/billing/prices.ts';
import type { Database } from '../../models/database/database.ts';

/** Bytes per token, fewer than most text has, so that the hold stays ahead of the provider's count. */
const bytesPerToken = 3;
/** Asks for more at this share of the hold, so that the answer does not have to wait. */
const askedAtShare = 0.75;
/** The expected growth of an answer from there, as a factor. */
const growth = 1.5;
const leastGrowthTokens = 128;

/** The hold of one running call, kept ahead of its output. */
export class GrowingHold {
  readonly #database: Database;
  readonly #call: CallRequest;
  readonly #atMost: number;
  /** The cost of the call so far, estimated high. */
  #micro: number;
  #held: number;
  #askAt: number;
  #asking: Promise<void> | undefined;

  constructor(database: Database, call: CallRequest, { held, atMost }: Allowance) {
    this.#database = database;
    this.#call = call;
    this.#atMost = atMost;
    this.#micro = ceilingOf(call.prices, call.inputTokens, 0);
    this.#held = held;
    this.#askAt = this.#micro + (held - this.#micro) * askedAtShare;
  }

  /**
   * Counts output. The reader waits if the output exceeds the hold. Rejects with 402 if there are no more credits. Once
   * the highest possible cost is held, the provider's limit bounds the answer.
   */
  said(part: ModelPart): void | Promise<void> {
    this.#micro += this.#costOf(part);
    if (this.#held >= this.#atMost || this.#micro < this.#askAt) return undefined;
    if (this.#micro > this.#held) return this.#wait();
    // An early request may fail. It is repeated when more is needed.
    if (this.#asking === undefined) this.#ask().catch(() => undefined);
    return undefined;
  }

  #costOf(part: ModelPart): number {
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta' && part.type !== 'tool-input-delta') return 0;
    const { output, reasoning } = this.#call.prices;
    return (Buffer.byteLength(part.delta) / bytesPerToken) * (part.type === 'reasoning-delta' ? reasoning : output);
  }

  async #wait(): Promise<void> {
    await this.#asking?.catch(() => undefined);
    if (this.#micro > this.#held && this.#held < this.#atMost) await this.#ask();
  }

  #ask(): Promise<void> {
    this.#asking = this.#grow().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #grow(): Promise<void> {
    const input = ceilingOf(this.#call.prices, this.#call.inputTokens, 0);
    const next = (this.#micro - input) * growth + leastGrowthTokens * this.#call.prices.output;
    const wanted = Math.min(Math.ceil(input + next), this.#atMost);
    const before = this.#held;
    this.#held = await growHold(this.#database, this.#call, {
      micro: Math.ceil(this.#micro),
      wanted: Math.max(wanted, before),
      atMost: this.#atMost,
    });
    // After a refusal, asks for more only when it is needed.
    this.#askAt = this.#held > before ? input + (this.#held - input) * askedAtShare : this.#held;
  }
}
