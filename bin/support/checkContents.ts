import type { Config } from '../../config/index.ts';
import { openDatabase } from '../../models/database/database.ts';
import { createContentFindings } from '../../models/drive/findings.ts';
import { type CheckResult, ok, wrong } from './check.ts';

const shown = 10;

/** Reports stored objects that are damaged or missing: files, repositories, profiles, backups of databases. */
export async function checkContents(config: Config): Promise<CheckResult> {
  await using database = openDatabase(config);
  const findings = createContentFindings(database);
  const counts = await findings.counts();
  const [damaged = 0, missing = 0] = [counts.get('damaged'), counts.get('missing')];
  const suspects = await findings.suspectCount();
  const waiting = suspects === 0 ? '' : `; still to be looked at after an unclean end or a restore: ${suspects}`;
  if (damaged + missing === 0) return ok(`none is known to be damaged or missing${waiting}`);
  const some = await findings.list(shown);
  const names = some.map(
    ({ spaceId, objectKey, finding, itemId }) => `${itemId ?? objectKey} (${spaceId}, ${finding})`,
  );
  const more = damaged + missing > some.length ? ', …' : '';
  return wrong(`${damaged} damaged, ${missing} missing: ${names.join(', ')}${more}${waiting}. See docs/operations.md`);
}
