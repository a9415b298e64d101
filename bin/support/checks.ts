import { loadConfig, settingNames } from '../../config/index.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { describeGit } from '../../stack/git.ts';
import { isPortFree } from '../../stack/ports.ts';
import { describeProgram } from '../../stack/programs.ts';
import { type Check, type CheckResult, off, ok, wrong } from './check.ts';
import { checkDatabaseAccess, checkStorageAccess, checkTemporalAccess } from './checkAccess.ts';
import { checkPayments, checkPrices } from './checkBilling.ts';
import { checkModels, checkPush } from './checkChat.ts';
import { checkComputers, checkDesktops, checkDrivers, checkHosts } from './checkComputers.ts';
import { checkDatabases } from './checkDatabases.ts';
import { checkGitHosting } from './checkGitHosting.ts';
import { checkDatabase, checkRedis, checkStorage, checkTemporal } from './checkParts.ts';
import { checkKms, checkMail, checkSignIn } from './checkPeople.ts';
import { checkEgress, checkMcpServers } from './checkTools.ts';
import { describeFailure } from './failure.ts';
import { findRunning, type RunningAtrium } from './running.ts';

/** All checks, one after the other; none of them changes anything. */
export async function runChecks(): Promise<Check[]> {
  const checks: Check[] = [];
  const check = async (name: string, look: () => CheckResult | Promise<CheckResult>) => {
    const answer = await Promise.resolve()
      .then(look)
      .catch((error: unknown) => wrong(describeFailure(error).split('\n')[0] ?? 'unknown'));
    checks.push({ name, ...answer });
    return answer.state === 'ok';
  };

  await check('Node', () => ok(process.version));
  if (!(await check('settings', () => ok(`data in ${loadLaunchConfig().dataDir}`)))) return checks;
  const launch = loadLaunchConfig();
  const running = findRunning(launch.dataDir);
  await check('names of settings', () => checkNames(launch, running !== undefined));
  await checkPrograms(launch, check);
  await check('port', () => checkPort(launch, running));

  await check('git', () => describeGit(launch));
  // Where those of the product that runs are.
  const computersDir = running?.environment.ATRIUM_COMPUTERS_DIR ?? launch.computersDir;
  await check('computers', () => checkComputers({ ...launch, computersDir }));
  await check('drivers of computers', () => checkDrivers(launch));
  await check('desktops', () => checkDesktops(launch));
  if (launch.need.temporal) await check('temporal access', () => checkTemporalAccess(launch, running));

  const environment = { ...running?.environment, ...launch.environment };
  const configured = running !== undefined || Object.values(launch.need).every((needed) => !needed);
  if (!configured) {
    await check('parts', () => off('do not run now; "npm start" starts them'));
    return checks;
  }
  const config = loadConfig(environment);
  await check('database', () => checkDatabase(config));
  await check('hosts of computers', () => checkHosts(config));
  await check('temporal', () => checkTemporal(config));
  await check('storage', () => checkStorage(config));
  await check('redis', () => checkRedis(config));
  if (launch.need.database) await check('database access', () => checkDatabaseAccess(config));
  if (launch.need.storage) await check('storage access', () => checkStorageAccess(config));
  await check('models', () => checkModels(config));
  await check('push', () => checkPush(config));
  await check('egress', () => checkEgress(config, running === undefined));
  await check('mcp servers', () => checkMcpServers(config));
  await check('databases of spaces', () => checkDatabases(config));
  await check('git hosting', () => checkGitHosting(config));
  await check('payments', () => checkPayments(config));
  await check('prices', () => checkPrices(config));
  await check('kms', () => checkKms(config));
  await check('single sign-on', () => checkSignIn(config));
  await check('mail', () => checkMail(config));
  return checks;
}

/** A misspelled name would be silently ignored. */
function checkNames({ environment }: LaunchConfig, isRunning: boolean): CheckResult {
  const names = Object.keys(environment).filter((name) => name.startsWith('ATRIUM_'));
  const unknown = names.filter((name) => !settingNames.includes(name));
  // Provider keys and the like are not in a file: only the running Atrium's own environment has them.
  const unseen = isRunning ? '; those that only the running Atrium was started with are not seen from here' : '';
  if (unknown.length === 0) return ok(`${names.length} are set here${unseen}`);
  return wrong(`there is no ${unknown.join(', ')}; docs/configuration.md has them all`);
}

/** The programs that `npm start` would use here, for the parts that are not configured elsewhere. */
async function checkPrograms(
  launch: LaunchConfig,
  check: (name: string, look: () => CheckResult) => Promise<boolean>,
): Promise<void> {
  const programs = { database: 'mariadbd', temporal: 'temporal', storage: 'versitygw' } as const;
  for (const [part, program] of Object.entries(programs) as [keyof typeof programs, string][]) {
    if (!launch.need[part]) continue;
    await check(program, () => {
      const found = describeProgram(program, launch);
      return found.missing ? wrong(found.detail) : ok(found.detail);
    });
  }
}

async function checkPort({ http }: LaunchConfig, running: RunningAtrium | undefined): Promise<CheckResult> {
  if (running !== undefined) return ok(`${running.apiUrl ?? 'not yet taken'}, by the Atrium that runs`);
  if (http.port === 0 || (await isPortFree(http.port, http.host))) return ok(`${http.port} is free`);
  return wrong(`${http.port} is taken. Stop what uses it, or set ATRIUM_PORT to another.`);
}
