import { join } from 'node:path';
import { loadLaunchConfig } from '../../config/launch.ts';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import { hostLayout } from '../../integrations/computers/host/layout.ts';
import { installProgram } from '../../integrations/computers/programs/install.ts';
import { getAgent } from '../../stack/programs.ts';
import { createStackContext } from './stackContext.ts';

/** The agent of computers, built once for this user. */
export function agentProgram(): Promise<string> {
  return getAgent(createStackContext({ cacheDir: loadLaunchConfig(process.env).cacheDir }));
}

/** Puts Node into the computers of a host at `/opt/atrium/node`, where tests run programs with it. */
export function addNode(dir: string): Promise<void> {
  return installProgram(process.execPath, join(hostLayout(dir).runtime, 'agent', 'node'));
}

/** Ends all that the host of a folder runs. */
export async function shutDownHost(dir: string): Promise<void> {
  await (await createHost({ dir, agent: await agentProgram() })).shutdown();
}
