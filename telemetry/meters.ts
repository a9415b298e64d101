import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { lostLogLines } from './logSink.ts';

/** The usage of a finished model call, in tokens as its provider counts them. */
export interface MeteredUsage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

export interface EndedTurnMetrics {
  modelId: string;
  status: string;
  /** Why it failed. */
  code: string | null;
  seconds: number;
}

const seconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

/**
 * What the product does, for `/metrics`: turns, model calls, sweeps, streams. Each process has one. Users choose no
 * label's value, so the number of series is bounded.
 */
export function createMeters() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `atrium_${name}_total`, help, labelNames, registers });
  const histogram = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Histogram({ name: `atrium_${name}_seconds`, help, labelNames, buckets: seconds, registers });

  const turnsBegun = counter('turns_begun', 'Turns that were accepted here, queued ones too.', ['model']);
  const turnsEnded = counter('turns_ended', 'Turns that ended here; `code` says why one failed.', ['status', 'code']);
  const turnTime = histogram('turn_duration', 'From the start of a turn to its end, waits for people included.', [
    'status',
  ]);
  const firstWords = histogram('first_output', 'From the start of a turn to its first visible output.', ['model']);
  const modelCalls = counter('model_calls', 'Model calls that ended; `outcome` is a failure’s code.', [
    'model',
    'outcome',
  ]);
  const tokens = counter('model_tokens', 'Tokens, as providers count them.', ['model', 'kind']);
  const swept = counter('swept', 'What sweeps have looked at, and what they did about it.', ['sweep', 'outcome']);
  new Counter({
    name: 'atrium_log_lines_dropped_total',
    help: 'Log lines of this process that were dropped, because their target took none.',
    registers,
    collect() {
      this.reset();
      this.inc(lostLogLines());
    },
  });
  const streams = new Gauge({
    name: 'atrium_open_streams',
    help: 'Event streams that are being read here.',
    registers,
  });

  return {
    registry,
    turnBegun: (modelId: string) => turnsBegun.inc({ model: modelId }),
    turnEnded({ status, code, seconds: took }: EndedTurnMetrics) {
      turnsEnded.inc({ status, code: code ?? '' });
      turnTime.observe({ status }, took);
    },
    firstOutput: (modelId: string, took: number) => firstWords.observe({ model: modelId }, took),
    modelCallEnded: (modelId: string, outcome: string) => modelCalls.inc({ model: modelId, outcome }),
    modelUsed(modelId: string, usage: MeteredUsage) {
      const kinds = {
        input: usage.inputTokens,
        cachedInput: usage.cachedInputTokens,
        output: usage.outputTokens,
        reasoning: usage.reasoningTokens,
      };
      for (const [kind, count] of Object.entries(kinds)) tokens.inc({ model: modelId, kind }, count);
    },
    swept(sweep: string, outcomes: Readonly<Record<string, number>>) {
      for (const [outcome, count] of Object.entries(outcomes)) swept.inc({ sweep, outcome }, count);
    },
    /** Returns the function that ends it. */
    streamOpened(): () => void {
      streams.inc();
      return () => streams.dec();
    },
    /** Reads the values of a label at each scrape. */
    gauge(name: string, help: string, label: string, read: () => Promise<ReadonlyMap<string, number>>) {
      new Gauge({
        name: `atrium_${name}`,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const values = await read();
          this.reset();
          for (const [value, count] of values) this.set({ [label]: value }, count);
        },
      });
    },
  };
}

export type Meters = ReturnType<typeof createMeters>;
