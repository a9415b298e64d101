import { randomUUID } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import type { ComputerRef } from '../../../integrations/computers/liveComputers.ts';
import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import { signatureOf } from '../../../integrations/git/rules/person.ts';
import type { UpgradeHandler } from '../../frame/area.ts';
import { actorOf } from '../../frame/auth/actor.ts';
import { authorOf } from '../../frame/auth/authorOf.ts';
import { callerOf } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { pathOf, queryOf } from '../../frame/request.ts';
import { requireFreeId } from '../processes/routes.ts';
import { positionUnknown } from '../processes/sendText.ts';
import { Terminal } from './terminal.ts';

/** A login shell: bash if the computer has it. */
const shell = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'];

/** Opens a terminal: of an existing process, or of a new shell. */
export const openTerminal: UpgradeHandler = (deps) => async (req) => {
  const ref = pathOf<'openTerminal'>(req);
  const { after, writer = randomUUID() } = queryOf<'openTerminal'>(req);
  // A plain request must not start anything.
  if (req.handshake === undefined) return { open: () => undefined };
  const { client, process } = await attach(deps, ref, req);
  if (process.pty === null) throw new DomainError('conflict', 'NO_TERMINAL', 'This process has no terminal.');
  if (after !== undefined && after > process.outputBytes) throw positionUnknown();
  return {
    open(connection) {
      new Terminal({ connection, client, process, writer, userId: callerOf(req).userId, log: req.log }).run(after);
    },
  };
};

async function attach(
  deps: Pick<RouteDeps, 'liveComputers' | 'identity'>,
  ref: ComputerRef,
  req: Request,
): Promise<{ client: HostClient; process: ProcessInfo }> {
  const { processId, cols = 80, rows = 24 } = queryOf<'openTerminal'>(req);
  if (processId !== undefined) {
    const client = await deps.liveComputers.asIs(ref).catch(whenUnknown);
    const known = await client?.process(processId).catch(whenUnknown);
    if (client !== undefined && known !== undefined) return { client, process: known };
    requireFreeId(processId);
  }
  const client = await deps.liveComputers.awake(ref, actorOf(req));
  const start = {
    processId: processId ?? newId('process'),
    command: shell,
    pty: { cols, rows },
    env: terminalEnv,
    usualEnv: signatureOf(await authorOf(deps, req)),
  };
  try {
    return { client, process: (await client.startProcess(start)).process };
  } catch (error) {
    // Another caller has just started another command under this id: attach to that.
    if (!(error instanceof DomainError) || error.code !== 'PROCESS_ID_TAKEN') throw error;
    return { client, process: await client.process(start.processId) };
  }
}

const terminalEnv = { TERM: 'xterm-256color', COLORTERM: 'truecolor' };

function whenUnknown(error: unknown): undefined {
  if (error instanceof DomainError && (error.kind === 'notFound' || error.code === 'COMPUTER_NOT_RUNNING')) return;
  throw error;
}
