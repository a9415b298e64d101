import { loadLaunchConfig } from '../../config/launch.ts';
import { startStack } from '../../stack/index.ts';
import { processesWith } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';

const none = { database: false, temporal: false, storage: false };

test('onLaunched is called before a service is reported as started', async () => {
  const { dataDir, lines, environment, report } = createStackContext();
  const heard: string[][] = [];
  const stack = await startStack({
    dataDir,
    cacheDir: loadLaunchConfig().cacheDir,
    environment,
    need: { ...none, storage: true },
    ports: 'free',
    report,
    onLaunched: () => heard.push(lines.filter((line) => line.includes('started'))),
  });
  await stack.stop();
  expect(heard).toEqual([[]]);
  expect(lines.filter((line) => line.includes('started'))).toHaveLength(1);
});

test('onLaunched is also called if there is no service to start', async () => {
  const { dataDir, cacheDir, environment } = createStackContext();
  let heard = 0;
  const onLaunched = () => {
    heard += 1;
  };
  const stack = await startStack({ dataDir, cacheDir, environment, need: none, onLaunched });
  await stack.stop();
  expect(heard).toBe(1);
});

test('a stack that is aborted during its start leaves no process', async () => {
  const { dataDir, environment, report } = createStackContext();
  const stop = new AbortController();
  const starting = startStack({
    dataDir,
    cacheDir: loadLaunchConfig().cacheDir,
    environment,
    need: { ...none, storage: true },
    ports: 'free',
    report,
    signal: stop.signal,
    onLaunched: () => stop.abort(new Error('Given up.')),
  });
  await expect(starting).rejects.toThrow(/aborted|Given up/);
  expect(processesWith(dataDir)).toEqual([]);
});
