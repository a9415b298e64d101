import { createRequire } from 'node:module';
import { pino, stdTimeFunctions } from 'pino';
import type PinoPretty from 'pino-pretty';
import { withoutKnownSecrets } from './knownSecrets.ts';
import { loggable } from './loggable.ts';
import { LogSink } from './logSink.ts';
import { fileTarget, standardErrorTarget } from './logTargets.ts';

export type { Logger } from 'pino';

/** Paths of fields that are censored in every log line. */
const redactedPaths = [
  'req.headers.authorization',
  'req.headers.cookie',
  'res.headers["set-cookie"]',
  '*.password',
  '*.secret',
  '*.token',
  '*.apiKey',
  '*.sessionToken',
  '*.secretValue',
];

/** The size limit of the log file, and of the one before it. */
const maxFileBytes = 20 * 1_048_576;
const name = 'atrium';

let standardError: LogSink | undefined;

/** Readable lines for a person at a terminal, JSON for a program. The process's one sink keeps lines in order. */
function toStandardError(): { write(line: string): void } {
  standardError ??= new LogSink(standardErrorTarget(), lossLine);
  const sink = standardError;
  if (!process.stderr.isTTY) return sink;
  // Loaded only for a person, because imports delay a start.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  const pretty = prettyFactory({ translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname,name', singleLine: true });
  return { write: (line) => sink.write(pretty(line)) };
}

function lossLine(lostLines: number): string {
  const msg = 'Log lines were dropped here, because the log target did not accept them.';
  return `${JSON.stringify({ level: 40, time: new Date().toISOString(), name, lostLines, msg })}\n`;
}

/**
 * The process's logger. Writes JSON lines to standard error, since standard output is for a command's answer, or to a
 * file that is kept small. Nothing waits for it (`logSink.ts`).
 */
export function createLogger(options: { level: string; name?: string; destination?: string }) {
  return pino(
    {
      level: options.level,
      base: { name: options.name ?? name },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: loggable },
      redact: { paths: redactedPaths, censor: '[redacted]' },
      // Removes known secrets from every line, field and error.
      hooks: { streamWrite: withoutKnownSecrets },
    },
    options.destination === undefined
      ? toStandardError()
      : new LogSink(fileTarget(options.destination, maxFileBytes), lossLine),
  );
}
