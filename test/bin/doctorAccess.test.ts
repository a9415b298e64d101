import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkDatabaseAccess, checkStorageAccess, checkTemporalAccess } from '../../bin/support/checkAccess.ts';
import { checkStorage } from '../../bin/support/checkParts.ts';
import type { RunningAtrium } from '../../bin/support/running.ts';
import { loadConfig } from '../../config/index.ts';
import { loadLaunchConfig } from '../../config/launch.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';

// The checks of `atrium doctor` for access to the embedded servers: here the servers of this test run.

const config = loadConfig({ ...stackEnvironment(), ATRIUM_DATA_DIR: temporaryFolder() });

test('the database requires a password', async () => {
  expect(await checkDatabaseAccess(config)).toEqual({ state: 'ok', detail: 'by password only, from this machine' });
});

test('the object store refuses requests without a key and pages of other origins', async () => {
  expect(await checkStorageAccess(config)).toEqual({ state: 'ok', detail: 'by signed requests only' });
});

test('a clock that differs from the object store’s is named', async () => {
  const now = Date.now;
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
  try {
    await expect(checkStorage(config)).rejects.toMatchObject({ name: 'RequestTimeTooSkewed' });
  } finally {
    clock.mockRestore(); // Jest measures the file with this clock
  }
});

test('an open object store is reported', async () => {
  const check = async (listener: RequestListener) => {
    const store = createServer(listener).listen(0, '127.0.0.1');
    await once(store, 'listening');
    const endpoint = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
    const answer = await checkStorageAccess({ storage: { ...config.storage, endpoint } });
    store.close();
    return answer;
  };
  const open: RequestListener = (_req, res) => res.end('<ListBucketResult/>');
  const lax: RequestListener = (_req, res) => res.writeHead(403, { 'access-control-allow-origin': '*' }).end();
  expect(await check(open)).toMatchObject({ state: 'wrong', detail: expect.stringContaining('200') });
  expect(await check(lax)).toMatchObject({ state: 'wrong', detail: 'pages of * may read its answers' });
});

test('a Temporal server that others can reach is reported, with the reason', () => {
  const launch = loadLaunchConfig({ ...process.env, ATRIUM_DATA_DIR: temporaryFolder() });
  const running = (openBecause?: string) => {
    const parts = [{ name: 'temporal', address: '127.0.0.1:7233', pid: 1, openBecause }];
    return { parts, environment: {} } as unknown as RunningAtrium;
  };
  expect(checkTemporalAccess(launch, running()).state).toBe('ok');
  expect(checkTemporalAccess(launch, running('only Linux has network namespaces'))).toEqual({
    state: 'off',
    detail: expect.stringMatching(/every user of this machine .* only Linux has network namespaces$/),
  });
});
