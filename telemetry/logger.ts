import { createRequire } from 'node:module';
import { pino, stdTimeFunctions } from 'pino';
import type PinoPretty from 'pino-pretty';
import { withoutKnownSecrets } from './knownSecrets.ts';
import { loggable } from './loggable.ts';
import { LogSink } from './logSink.ts';
import { fileTarget, standardErrorTarget } from './logTargets.ts';
import { redacted } from './secretForms.ts';

export type { Logger } from 'pino';

/** Names of fields that are censored in every log line, at every depth. */
const secretFields = new Set([
  ...['authorization', 'cookie', 'set-cookie'],
  ...['password', 'secret', 'token', 'apiKey', 'sessionToken', 'secretValue'],
]);
/** Finds such a field. A text that only names one does not match, because its quotes are escaped. */
const aSecretField = new RegExp(`"(?:${[...secretFields].join('|')})":`);

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

/** Not by pino's `redact`, which takes several times as long and knows no depth. Few lines have such a field. */
function withoutSecretFields(line: string): string {
  if (!aSecretField.test(line)) return line;
  const censor = (name: string, value: unknown) => (secretFields.has(name) ? redacted : value);
  return `${JSON.stringify(JSON.parse(line), censor)}\n`;
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
      // Removes known secrets from every line, field and error.
      hooks: { streamWrite: (line) => withoutKnownSecrets(withoutSecretFields(line)) },
    },
    options.destination === undefined
      ? toStandardError()
      : new LogSink(fileTarget(options.destination, maxFileBytes), lossLine),
  );
}
