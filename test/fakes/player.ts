import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { deltasOf, type FakeScript, type FakeUsage } from './script.ts';
import { brokenEvent, type Wire } from './wire.ts';

/** Counts what was sent of an answer, for tests to inspect. */
export interface Played {
  deltasSent: number;
  bytesSent: number;
}

/** Plays a script as the stream of a provider. Returns when it has ended or the client has gone. */
export async function play(script: FakeScript, wire: Wire, response: ServerResponse, played: Played): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const keepAlive = script.keepAliveMs && setInterval(() => response.write(': keep-alive\n\n'), script.keepAliveMs);
  try {
    await stream(script, wire, new Sender(script, response, played, gone.signal), gone.signal);
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    if (keepAlive) clearInterval(keepAlive);
  }
}

async function stream(script: FakeScript, wire: Wire, sender: Sender, gone: AbortSignal): Promise<void> {
  const deltas = deltasOf(script);
  const failAt =
    script.fail && script.fail.afterBytes === undefined ? (script.fail.afterDeltas ?? deltas.count) : undefined;
  const intervalMs = script.intervalMs ?? 0;
  const perWrite = intervalMs > 0 ? 1 : (script.tokensPerWrite ?? 1);

  await sender.send(wire.start(), 0);
  if (script.firstTokenDelayMs) await sleep(script.firstTokenDelayMs, undefined, { signal: gone });
  const startedMs = performance.now();
  for (let index = 0; index < deltas.count && index !== failAt; ) {
    // Tokens follow an absolute schedule: a late timer delays one token, but none after it.
    const waitMs = startedMs + index * intervalMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: gone });
    const end = Math.min(index + perWrite, deltas.count, failAt ?? deltas.count);
    let events = '';
    for (let next = index; next < end; next++) events += wire.delta(deltas.at(next));
    await sender.send(events, end - index);
    index = end;
    gone.throwIfAborted();
  }
  if (script.fail && failAt !== undefined) return fail(script.fail.how, wire, sender, gone);
  const natural = script.toolCalls?.length ? 'tool-calls' : 'stop';
  const reason = script.finishReason === undefined ? natural : script.finishReason;
  await sender.send(wire.finish(reason, usageOf(script, deltas.count)), 0);
  sender.end();
}

async function fail(how: NonNullable<FakeScript['fail']>['how'], wire: Wire, sender: Sender, gone: AbortSignal) {
  if (how === 'stall') return void (await once(gone, 'abort'));
  if (how === 'cut' || how === 'reset') return sender.destroy(how);
  if (how === 'badJson') await sender.send(brokenEvent, 0);
  if (how === 'errorEvent') await sender.send(wire.error(), 0);
  sender.end();
}

function usageOf(script: FakeScript, deltas: number): FakeUsage | null {
  return script.usage === undefined ? { inputTokens: 10, outputTokens: deltas } : script.usage;
}

/** Writes events, waits for a slow client, and breaks off at a given byte. */
class Sender {
  private readonly script: FakeScript;
  private readonly response: ServerResponse;
  private readonly played: Played;
  private readonly gone: AbortSignal;

  constructor(script: FakeScript, response: ServerResponse, played: Played, gone: AbortSignal) {
    this.script = script;
    this.response = response;
    this.played = played;
    this.gone = gone;
  }

  async send(events: string, deltas: number): Promise<void> {
    if (events === '') return;
    const { afterBytes, how } = this.script.fail ?? {};
    if (afterBytes === undefined) {
      this.played.bytesSent += events.length;
      this.played.deltasSent += deltas;
      if (!this.response.write(events)) await once(this.response, 'drain', { signal: this.gone });
      return;
    }
    const bytes = Buffer.from(events).subarray(0, afterBytes - this.played.bytesSent);
    this.played.bytesSent += bytes.length;
    await new Promise((resolve) => this.response.write(bytes, resolve));
    if (this.played.bytesSent >= afterBytes) this.response.socket?.[how === 'reset' ? 'resetAndDestroy' : 'destroy']();
  }

  /** Closes the connection once the written bytes have been sent. */
  async destroy(how: 'cut' | 'reset'): Promise<void> {
    await new Promise((resolve) => this.response.write(': \n\n', resolve));
    if (how === 'reset') this.response.socket?.resetAndDestroy();
    else this.response.socket?.destroy();
  }

  end(): void {
    this.response.end();
  }
}
