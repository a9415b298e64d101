import { prepareDataDir } from '../../stack/folders.ts';
import { markInUse } from '../../stack/uncleanStart.ts';
import { temporaryFolder } from '../support/folders.ts';

test('an unclean end is reported by the next start, and not after an orderly stop', () => {
  const dataDir = temporaryFolder();
  prepareDataDir(dataDir);
  expect(markInUse(dataDir).wasUnclean).toBe(false);
  const second = markInUse(dataDir);
  expect(second.wasUnclean).toBe(true);
  second.end();
  const third = markInUse(dataDir);
  expect(third.wasUnclean).toBe(false);
  third.end();
  third.end();
});
