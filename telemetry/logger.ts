import { pino, stdTimeFunctions } from 'pino';
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

/** The process's logger: JSON lines on standard error, so that standard output stays for what a person asked for. */
export function createLogger(options: { level: string; name?: string; destination?: string }) {
  return pino(
    {
      level: options.level,
      base: { name: options.name ?? 'atrium' },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: loggable },
      redact: { paths: redactedPaths, censor: '[redacted]' },
      // Whatever line, field or error a secret of a space has got into: it goes out of it here.
      hooks: { streamWrite: withoutKnownSecrets },
    },
    options.destination === undefined
      ? pino.destination({ dest: 2, sync: true })
      : pino.destination({ dest: options.destination, mkdir: true, sync: false }),
  );
}
