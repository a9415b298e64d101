import { createRequire } from 'node:module';
import { pino, stdTimeFunctions } from 'pino';
import type PinoPretty from 'pino-pretty';
import { withoutKnownSecrets } from './knownSecrets.ts';
import { loggable } from './loggable.ts';

export type { Logger } from 'pino';

/** Fields that never reach a log, wherever in the object they are. */
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

/** For a person at a terminal, lines; for a program, JSON. */
function standardError() {
  if (!process.stderr.isTTY) return pino.destination({ dest: 2, sync: true });
  // Loaded for a person only: a start waits for what it imports.
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  const form = { translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname,name', singleLine: true };
  return pretty({ destination: 2, sync: true, ...form });
}

/** The process's logger: JSON lines on standard error, since standard output is for a command's answer. */
export function createLogger(options: { level: string; name?: string; destination?: string }) {
  return pino(
    {
      level: options.level,
      base: { name: options.name ?? 'atrium' },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: loggable },
      redact: { paths: redactedPaths, censor: '[redacted]' },
      // Removes a space's secrets from any line, field or error here.
      hooks: { streamWrite: withoutKnownSecrets },
    },
    options.destination === undefined
      ? standardError()
      : pino.destination({ dest: options.destination, mkdir: true, sync: false }),
  );
}
