import type { ModelPart } from '../../integrations/chat/modelCall.ts';
import { type Allowance, type CallRequest, growHold } from '../../models/billing/gate.ts';
import { ceilingOf } from '../../models/billing/prices.ts';
import type { Database } from '../../models/database/database.ts';

/** Bytes per token, fewer than most text has, so that the hold stays ahead of the provider's count. */
const bytesPerToken = 3;
/** Hardly any text has more bytes per token on average. */
const mostBytesPerToken = 8;
/** Providers send at most one delta per token. Shorter deltas may have been split on the way. */
const leastBytesPerDelta = 4;
/** Asks for more at this share of the hold, so that the answer does not have to wait. */
const askedAtShare = 0.75;
/** The expected growth of an answer from there, as a factor. */
const growth = 1.5;
const leastGrowthTokens = 128;

/** The hold of one running call, kept ahead of its output. */
export class GrowingHold {
  readonly #database: Database;
  readonly #call: CallRequest;
  /** What the call may cost at most, if its provider keeps to the length that it was asked for. */
  #atMost: number;
  /** The cost of the call so far, estimated high. */
  #micro: number;
  readonly #output = { text: { bytes: 0, deltas: 0 }, reasoning: { bytes: 0, deltas: 0 } };
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
   * the highest possible cost is held, the provider's limit bounds the answer, until the answer is certainly longer.
   */
  said(part: ModelPart): void | Promise<void> {
    this.#count(part);
    if (this.#held >= this.#atMost) {
      const sure = this.#sureCost();
      if (sure <= this.#held) return undefined;
      // The provider ignores its limit, or the catalogue's is too low: from here on only the credits bound the answer.
      this.#atMost = Number.POSITIVE_INFINITY;
      this.#micro = sure;
    }
    if (this.#micro < this.#askAt) return undefined;
    if (this.#micro > this.#held) return this.#wait();
    // An early request may fail. It is repeated when more is needed.
    if (this.#asking === undefined) this.#ask().catch(() => undefined);
    return undefined;
  }

  #count(part: ModelPart): void {
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta' && part.type !== 'tool-input-delta') return;
    const isReasoning = part.type === 'reasoning-delta';
    const { output, reasoning } = this.#call.prices;
    const bytes = Buffer.byteLength(part.delta);
    const said = isReasoning ? this.#output.reasoning : this.#output.text;
    said.bytes += bytes;
    said.deltas += bytes > 0 ? 1 : 0;
    this.#micro += (bytes / bytesPerToken) * (isReasoning ? reasoning : output);
  }

  /** The cost of the call so far, estimated low, so that an answer within its limit never seems to exceed it. */
  #sureCost(): number {
    const { prices, inputTokens } = this.#call;
    const tokens = ({ bytes, deltas }: { bytes: number; deltas: number }) =>
      Math.floor(Math.max(bytes / mostBytesPerToken, Math.min(deltas, bytes / leastBytesPerDelta)));
    const { text, reasoning } = this.#output;
    return ceilingOf(prices, inputTokens, 0) + tokens(text) * prices.output + tokens(reasoning) * prices.reasoning;
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
