import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../telemetry/logger.ts';
import { temporaryFolder } from '../support/folders.ts';
import { waitFor } from '../support/waitFor.ts';

const destination = join(temporaryFolder(), 'log');
const logger = createLogger({ level: 'info', destination });

/** The line that was written last, once it is there. */
const lineWith = (msg: string) =>
  waitFor('the line', () =>
    readFileSync(destination, 'utf8')
      .split('\n')
      .find((line) => line.endsWith(`"msg":${JSON.stringify(msg)}}`)),
  );

test('a field that is secret by its name is censored at every depth, and whatever its value is', async () => {
  const fields = {
    password: 'canary-1',
    spaceId: 'spc_1',
    call: { token: 'canary-2', deeper: { apiKey: 'canary-3"\\', list: [{ secret: { of: ['canary-4'] } }] } },
    req: { headers: { authorization: 'canary-5', cookie: 'canary-6', accept: 'text/html' } },
  };
  logger.child({ sessionToken: 'canary-7' }).info(fields, 'Told');
  const line = await lineWith('Told');
  expect(line).not.toContain('canary');
  expect(JSON.parse(line)).toMatchObject({
    sessionToken: '[redacted]',
    password: '[redacted]',
    spaceId: 'spc_1',
    call: { token: '[redacted]', deeper: { apiKey: '[redacted]', list: [{ secret: '[redacted]' }] } },
    req: { headers: { authorization: '[redacted]', cookie: '[redacted]', accept: 'text/html' } },
  });
});

test('a text that names such a field stays', async () => {
  const msg = 'Send {"token":"…"} or "password":1.';
  logger.info({ field: 'token', tokens: 5 }, msg);
  expect(JSON.parse(await lineWith(msg))).toMatchObject({ field: 'token', tokens: 5, msg });
});
