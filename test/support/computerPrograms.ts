import { loadLaunchConfig } from '../../config/launch.ts';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import { getAgent, getDriveDaemon, shared } from '../../stack/programs.ts';
import { createStackContext } from './stackContext.ts';

export const { cacheDir } = loadLaunchConfig(process.env);

/** The agent of computers, built once for this user. */
export function agentProgram(): Promise<string> {
  return getAgent(createStackContext({ cacheDir }));
}

/** The program that shows computers their drive, built once for this user. */
export function driveDaemonProgram(): Promise<string> {
  return getDriveDaemon(createStackContext({ cacheDir }));
}

/** Node as the computers of tests see it, so that tests can run programs with it. */
export const nodeInside = { from: shared(process.execPath), to: '/opt/node' };

/** Ends all that the host of a folder runs. */
export async function shutDownHost(dir: string): Promise<void> {
  await (await createHost({ dir, agent: await agentProgram() })).shutdown();
}
