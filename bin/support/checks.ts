import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { findUnfinished } from '../../backup/restore/journal.ts';
import { type Config, ConfigError, loadConfig, settingNames, unknownSettings } from '../../config/index.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { faultOfDataDir } from '../../stack/folders.ts';
import { describeGit } from '../../stack/git.ts';
import { isPortFree } from '../../stack/ports.ts';
import { describeProgram } from '../../stack/programs.ts';
import {
  checkBrowsers,
  checkComputers,
  checkDesktops,
  checkDrive,
  checkDrivers,
  checkHosts,
  checkImages,
} from '../computers/check.ts';
import { type Check, type CheckResult, off, ok, slow, wrong } from './check.ts';
import { checkDatabaseAccess, checkStorageAccess, checkTemporalAccess } from './checkAccess.ts';
import { checkBackups } from './checkBackups.ts';
import { checkPayments, checkPrices } from './checkBilling.ts';
import { checkModels, checkPush } from './checkChat.ts';
import { checkContents } from './checkContents.ts';
import { checkDatabases } from './checkDatabases.ts';
import { checkDisk } from './checkDisk.ts';
import { checkGitHosting } from './checkGitHosting.ts';
import { checkDatabase, checkRedis, checkStorage, checkSweeps, checkTemporal } from './checkParts.ts';
import { checkKms, checkMail, checkSignIn } from './checkPeople.ts';
import { checkEgress, checkMcpServers } from './checkTools.ts';
import { describeFailure } from './failure.ts';
import { findInstallation } from './findInstallation.ts';
import { checkQuiet } from './quiet.ts';
import { findRunning, type RunningAtrium } from './running.ts';

/** A check may take this many times longer than expected: on a busy machine a slow part is not broken. */
const patience = 5;
/** Limit for checks that try something on this machine. The first one has to make a sandbox. */
const trialMs = 60_000;

type Part = keyof LaunchConfig['need'];
const partNames = {
  database: 'database',
  temporal: 'temporal',
  storage: 'storage',
  tenantDatabase: 'server for databases of spaces',
} as const satisfies Record<Part, string>;
const parts = Object.keys(partNames) as Part[];

interface Look {
  name: string;
  look: () => CheckResult | Promise<CheckResult>;
  /** Set where the usual limit does not fit. */
  answerMs?: number;
}

/**
 * Runs all checks side by side. None of them changes anything. A frozen database or store never answers, so each check
 * has `answerMs`, multiplied by `patience`. Parts configured elsewhere are checked even if Atrium does not run, since a
 * start would use them.
 */
export async function runChecks(answerMs: number): Promise<Check[]> {
  const run = async ({ name, look, answerMs: ownMs }: Look): Promise<Check> => ({
    name,
    ...(await within(ownMs ?? answerMs * patience, look, ownMs ?? answerMs)),
  });
  const first = await Promise.all(
    [
      { name: 'Node', look: () => ok(process.version) },
      { name: 'settings', look: checkSettings },
    ].map(run),
  );
  if (first.some(({ state }) => state === 'wrong')) return first;
  const launch = loadLaunchConfig();
  const running = findRunning(launch.dataDir);
  const unfinished = findUnfinished(launch.dataDir);
  const looks = [
    ...(unfinished === undefined ? [] : [{ name: 'restore', look: () => wrong(unfinished) }]),
    ...ofThisMachine(launch, running),
    ...ofParts(launch, running, unfinished !== undefined),
  ];
  return [...first, ...(await Promise.all(looks.map(run)))];
}

/** A wrong configuration has a line for each fault. Others have a stack. */
function lineOf(error: unknown): string {
  const lines = describeFailure(error).split('\n');
  return error instanceof ConfigError ? lines.join(' ') : (lines[0] ?? 'unknown');
}

function checkSettings(): CheckResult {
  const { dataDir } = loadLaunchConfig();
  const fault = faultOfDataDir(dataDir);
  return fault === undefined ? ok(`data in ${dataDir}`) : wrong(fault);
}

function ofThisMachine(launch: LaunchConfig, running: RunningAtrium | undefined): Look[] {
  // The folder of the running Atrium, if there is one.
  const computersDir = running?.environment.ATRIUM_COMPUTERS_DIR ?? launch.computersDir;
  const computers = within(trialMs, () => checkComputers({ ...launch, computersDir }));
  return [
    { name: 'names of settings', look: () => checkNames(launch, running !== undefined) },
    ...programsOf(launch),
    { name: 'disk', look: () => checkDisk(launch) },
    { name: 'port', look: () => checkPort(launch, running) },
    { name: 'git', look: () => describeGit(launch) },
    { name: 'computers', look: () => computers, answerMs: trialMs },
    // Drivers are checked after computers, since both checks try the same things.
    { name: 'drivers of computers', look: () => computers.then(() => checkDrivers(launch)), answerMs: 2 * trialMs },
    { name: 'drive in computers', look: () => checkDrive(launch) },
    { name: 'images of registries', look: () => checkImages(launch) },
    { name: 'desktops', look: () => checkDesktops(launch) },
    { name: 'browsers', look: () => checkBrowsers(launch) },
    ...(launch.need.temporal ? [{ name: 'temporal access', look: () => checkTemporalAccess(launch, running) }] : []),
  ];
}

function ofParts(launch: LaunchConfig, running: RunningAtrium | undefined, isRestoring: boolean): Look[] {
  // A starting Atrium publishes its parts once all of them run.
  const isThere = running !== undefined && (running.state !== 'starting' || running.parts.length > 0);
  const absent = parts.filter((part) => !isThere && launch.need[part]);
  const isEmpty = running === undefined && launch.need.database && findInstallation(launch) === undefined;
  const whyAbsent =
    running !== undefined
      ? 'still starting; ask again once Atrium is ready'
      : `not running now${isRestoring ? '' : '; "npm start" starts them'}`;
  let config: Config;
  try {
    config = loadConfig({ ...placesOf(absent), ...running?.environment, ...launch.environment });
  } catch (error) {
    return [{ name: 'configuration', look: () => Promise.reject(error) }];
  }
  const where = (part: Part, look: Look) => (absent.includes(part) ? [] : [look]);
  const isOurs = (part: Part) => launch.need[part];
  return [
    ...(absent.length > 0
      ? [
          {
            name: 'parts',
            look: () => off(`${absent.map((part) => partNames[part]).join(', ')}: ${whyAbsent}`),
          },
        ]
      : []),
    ...where('database', { name: 'database', look: () => checkDatabase(config) }),
    ...where('database', { name: 'sweeps', look: () => checkSweeps(config) }),
    ...where('database', { name: 'quiet', look: () => checkQuiet(config) }),
    ...where('database', { name: 'hosts of computers', look: () => checkHosts(config) }),
    ...where('temporal', { name: 'temporal', look: () => checkTemporal(config) }),
    ...where('storage', { name: 'storage', look: () => checkStorage(config) }),
    { name: 'redis', look: () => checkRedis(config) },
    ...(isOurs('database')
      ? where('database', { name: 'database access', look: () => checkDatabaseAccess(config) })
      : []),
    ...(isOurs('storage') ? where('storage', { name: 'storage access', look: () => checkStorageAccess(config) }) : []),
    { name: 'models', look: () => checkModels(config) },
    { name: 'push', look: () => checkPush(config) },
    ...where('database', { name: 'contents', look: () => checkContents(config) }),
    ...where('database', { name: 'egress', look: () => checkEgress(config, running === undefined) }),
    ...where('database', { name: 'mcp servers', look: () => checkMcpServers(config) }),
    ...where('tenantDatabase', { name: 'databases of spaces', look: () => checkDatabases(config) }),
    { name: 'git hosting', look: () => checkGitHosting(config) },
    { name: 'payments', look: () => checkPayments(config) },
    { name: 'prices', look: () => checkPrices(config) },
    { name: 'kms', look: () => checkKms(config) },
    { name: 'backups', look: () => checkBackups(config, isEmpty ? launch.dataDir : undefined) },
    { name: 'single sign-on', look: () => checkSignIn(config) },
    { name: 'mail', look: () => checkMail(config) },
  ];
}

/** Placeholder settings for absent parts, since a configuration must have them. No check uses them. */
function placesOf(absent: readonly Part[]): Record<string, string> {
  const settings: Record<Part, Record<string, string>> = {
    database: { ATRIUM_DATABASE_URL: 'mysql://none@127.0.0.1:1/none' },
    temporal: { ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:1' },
    storage: { ATRIUM_S3_ENDPOINT: 'http://127.0.0.1:1' },
    tenantDatabase: {}, // without one, spaces have no databases
  };
  return Object.assign({}, ...absent.map((part) => settings[part]));
}

/** The result of `look`, or that it did not answer in time. Reports `slow` where it took longer than `usualMs`. */
export async function within(answerMs: number, look: Look['look'], usualMs = answerMs): Promise<CheckResult> {
  const begin = performance.now();
  const over = new AbortController();
  // A busy process may have answers that it has not handled yet. `setImmediate` handles those first.
  const late = delay(answerMs, undefined, { signal: over.signal })
    .then(() => setImmediate())
    .then(() => wrong(`no answer within ${answerMs / 1_000} s`));
  late.catch(() => undefined);
  const looked = Promise.resolve()
    .then(look)
    .catch((error: unknown) => wrong(lineOf(error)));
  try {
    const result = await Promise.race([looked, late]);
    const tookMs = performance.now() - begin;
    if (result.state !== 'ok' || tookMs <= usualMs) return result;
    const load = `the load of this machine is ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`;
    return slow(`${result.detail}; it answers, but only after ${(tookMs / 1_000).toFixed(1)} s: ${load}`);
  } finally {
    over.abort();
  }
}

/** A misspelled name would be ignored without notice. */
function checkNames({ environment }: LaunchConfig, isRunning: boolean): CheckResult {
  const unknown = unknownSettings(environment);
  // Provider keys and the like are in no file. Only the environment of the running Atrium has them.
  const unseen = isRunning ? '; the running Atrium may have been started with others, which are not checked' : '';
  const set = Object.keys(environment).filter((name) => settingNames.includes(name)).length;
  if (unknown.length === 0) return ok(`all known, ${set} set here${unseen}`);
  return wrong(`there is no ${unknown.join(', ')}; docs/configuration.md has them all`);
}

/** The programs that `npm start` would use for the parts that are not configured elsewhere. */
function programsOf(launch: LaunchConfig): Look[] {
  const programs = [
    ['database', 'mariadbd'],
    ['temporal', 'temporal'],
    ['storage', 'atrium-store'],
  ] as const;
  return programs
    .filter(([part]) => launch.need[part])
    .map(([, program]) => ({
      name: program,
      look() {
        const found = describeProgram(program, launch);
        return found.missing ? wrong(found.detail) : ok(found.detail);
      },
    }));
}

/** A frozen process does not answer; the limit of the check reports that. */
async function checkRunning({ apiUrl }: RunningAtrium): Promise<CheckResult> {
  if (apiUrl === undefined) return off('the Atrium that runs has not taken it yet');
  const { status } = await fetch(new URL('/healthz', apiUrl));
  return status === 200 ? ok(`${apiUrl}, by the Atrium that runs`) : wrong(`${apiUrl} answers ${status} to /healthz`);
}

async function checkPort({ http }: LaunchConfig, running: RunningAtrium | undefined): Promise<CheckResult> {
  if (running !== undefined) return checkRunning(running);
  if (http.port === 0 || (await isPortFree(http.port, http.host))) return ok(`${http.port} is free`);
  return wrong(`${http.port} is taken. Stop what uses it, or set ATRIUM_PORT to another.`);
}
