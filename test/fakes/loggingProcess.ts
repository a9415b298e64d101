import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger } from '../../telemetry/logger.ts';
import { lostLogLines } from '../../telemetry/logSink.ts';

/**
 * A server that logs a lot for each request, to standard error or to the given file. `GET /lost` answers with the
 * number of dropped lines.
 */
const [destination] = process.argv.slice(2);
const logger = createLogger({ level: 'info', ...(destination !== undefined && { destination }) });
const text = 'x'.repeat(10_000);
let count = 0;
const server = createServer((req, res) => {
  if (req.url === '/lost') return res.end(String(lostLogLines()));
  for (let line = 0; line < 10; line++) logger.info({ count: count++, text }, 'A line of a busy process');
  return res.end('ok');
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
