import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * Test files that `npm test` leaves out to stay short, each with the areas that it covers: floods, fuzzing, kills, other
 * people's clients, and what computers, desktops and browsers do in detail. Shorter tests cover the same on a small scale.
 */
export const longTests = {
  'test/activities/billing/shuffledEvents.test.ts': ['billing'],
  'test/activities/tools/extremes.test.ts': ['tools'],
  'test/api/apps/previews.test.ts': ['apps'],
  'test/api/browsers/cdp.test.ts': ['browsers'],
  'test/api/browsers/downloads.test.ts': ['browsers'],
  'test/api/browsers/profiles.test.ts': ['browsers'],
  'test/api/chat/longThreads.test.ts': ['chat'],
  'test/api/computers/snapshotKills.test.ts': ['computers'],
  'test/api/desktops/recordingLimits.test.ts': ['desktops'],
  'test/api/desktops/view.test.ts': ['desktops'],
  'test/api/drive/brokenUploads.test.ts': ['drive'],
  'test/api/environments/builds.test.ts': ['environments', 'computers'],
  'test/api/frame/fuzz.test.ts': ['frame'],
  'test/api/frame/oddRequests.test.ts': ['frame'],
  'test/api/frame/unusedCompiling.test.ts': ['frame'],
  'test/api/git/bounds.test.ts': ['git'],
  'test/api/git/hostedClone.test.ts': ['git', 'gitHosting'],
  'test/backup/beside.test.ts': ['backup'],
  'test/backup/drill.test.ts': ['backup', 'restore'],
  'test/backup/ownServers.test.ts': ['backup'],
  'test/bin/watch.test.ts': ['bin'],
  'test/chaos/appRun.test.ts': ['apps'],
  'test/chaos/appWebhooks.test.ts': ['apps'],
  'test/chaos/browser.test.ts': ['browsers'],
  'test/chaos/browserLostHost.test.ts': ['browsers'],
  'test/chaos/continuedAnswer.test.ts': ['chat'],
  'test/chaos/desktop.test.ts': ['desktops'],
  'test/chaos/drive.test.ts': ['drive'],
  'test/chaos/driveFullStore.test.ts': ['drive'],
  'test/chaos/driveInComputers.test.ts': ['drive', 'drives', 'drivefs'],
  'test/chaos/gitDraft.test.ts': ['git'],
  'test/chaos/gitLostHost.test.ts': ['git'],
  'test/chaos/gitTree.test.ts': ['git'],
  'test/chaos/homesPowerCut.test.ts': ['computers'],
  'test/chaos/lostWorkers.test.ts': ['chat'],
  'test/chaos/recording.test.ts': ['desktops'],
  'test/chaos/redis.test.ts': ['chat'],
  'test/chaos/smallUpload.test.ts': ['drive'],
  'test/chaos/threeHosts.test.ts': ['computers'],
  'test/chaos/toolOutages.test.ts': ['tools'],
  'test/chaos/webhooks.test.ts': ['webhooks', 'billing'],
  'test/clients/agents.test.ts': ['openai', 'clients'],
  'test/clients/langchain.test.ts': ['openai', 'clients'],
  'test/clients/openaiPython.test.ts': ['openai', 'clients'],
  'test/clients/starter.test.ts': ['client', 'clients', 'openai'],
  'test/integrations/browsers/acting.test.ts': ['browsers'],
  'test/integrations/computers/crashes.test.ts': ['computers'],
  'test/integrations/computers/fullHost.test.ts': ['computers'],
  'test/integrations/git/attacks.test.ts': ['git'],
  'test/integrations/git/putTogether.test.ts': ['git'],
  'test/integrations/git/resume.test.ts': ['git'],
  'test/integrations/git/trees.test.ts': ['git'],
  'test/integrations/readers/reading.test.ts': ['readers'],
  'test/models/computers/replacedWishes.test.ts': ['computers'],
  'test/models/database/frozenDatabase.test.ts': ['database'],
  'test/scripts/newArea.test.ts': ['scripts', 'newArea'],
  'test/support/sharedProducts.test.ts': [],
  'test/temporal/olderWorker.test.ts': ['temporal'],
  'test/workflows/computers/life.test.ts': ['computers'],
  'test/workflows/computers/realHost.test.ts': ['computers'],
};

const root = join(import.meta.dirname, '..', '..');

/**
 * The areas that this run tests in full: `*` for all in `npm run test:long` and where the command line names files,
 * otherwise those with a changed file. An area has the same name in every layer, so each name in a path may be one.
 */
export function areasInFull(argv, { ATRIUM_TEST_SCOPE: scope, ATRIUM_TEST_SINCE: since } = process.env) {
  if (scope === 'long' || argv.some((argument) => argument.startsWith('test/'))) return ['*'];
  return [...new Set(changedFiles(since).flatMap((path) => path.replace(/\.[^/]*$/, '').split('/')))];
}

/** Paths that differ from the given commit, or from the branch's upstream, or at least from the last commit. */
function changedFiles(since) {
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const differing = (commit) => git('diff', '--name-only', '-z', commit, '--', '.');
  const untracked = () => git('ls-files', '--others', '--exclude-standard', '-z');
  for (const commit of since === undefined ? ['@{upstream}', 'HEAD'] : [since]) {
    try {
      return [differing(commit), untracked()].flatMap((list) => list.split('\0')).filter((path) => path !== '');
    } catch (error) {
      if (commit === since) throw new Error(`ATRIUM_TEST_SINCE: git knows no commit ${since}.`, { cause: error });
    }
  }
  return []; // not a repository, for example an unpacked archive
}

/** The files that `npm run test:long` runs: the long ones, and those that are larger in it (`inFull.ts`, `size.ts`). */
export function filesInFull() {
  const isLarger = (file) => /\binFull\(|\bsizeOf\([^,)]*,[^,)]*,/.test(readFileSync(join(root, file), 'utf8'));
  const files = readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name.endsWith('.test.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  return files.filter((file) => file in longTests || isLarger(file));
}

/** Jest's patterns for the files that a run leaves out. */
export function leftOut(areas) {
  if (areas.includes('*')) return [];
  return Object.entries(longTests)
    .filter(([, covered]) => !covered.some((area) => areas.includes(area)))
    .map(([file]) => `/${file.replaceAll('.', '\\.')}$`);
}
