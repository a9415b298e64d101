import type { AppManifest } from '../../../models/apps/manifest.ts';
import { whyMoreWaits } from '../../../models/apps/versionRules.ts';

function manifest(secrets: string[], environment?: string): AppManifest {
  const limits = { timeoutSeconds: 60, retry: { attempts: 1, delaySeconds: 0 }, concurrency: 1, isDefault: true };
  const common = { name: 'run', kind: 'process', command: 'true', cwd: '', env: {}, ...limits } as const;
  return { name: 'App', components: [{ ...common, secrets, ...(environment !== undefined && { environment }) }] };
}

test('A component that is given secrets waits for approval in another environment', () => {
  expect(whyMoreWaits(manifest(['A'], 'one'), manifest(['A'], 'two'))).toMatchObject([
    { code: 'ASKS_FOR_MORE', detail: 'The component run asks for more than before: another environment.' },
  ]);
  expect(whyMoreWaits(manifest(['A']), manifest(['A'], 'two'))).toHaveLength(1);
  expect(whyMoreWaits(manifest(['A'], 'one'), manifest(['A'], 'one'))).toEqual([]);
  expect(whyMoreWaits(manifest([], 'one'), manifest([], 'two'))).toEqual([]);
});
