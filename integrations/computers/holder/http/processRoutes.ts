import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../../../base/errors.ts';
import type { InputNumber } from '../../hostClient.ts';
import type { ProcessStore } from '../../processes/processStore.ts';
import type { StartProcess } from '../../types.ts';
import { type HolderProcesses, noTerminal } from '../processes/processes.ts';
import { requireSignal } from '../processes/runner.ts';
import { requireSize } from '../processes/startRequest.ts';
import type { Screens } from '../screens/screens.ts';
import { bodyOf, flagOf, jsonOf, notFoundHere, numberOf, type Route, send } from './answers.ts';

const maxStartBytes = 8 * 1_048_576;
const maxInputBytes = 1_048_576;

/** Requests on processes while their computer runs. */
export async function processRoute(
  { processes, store, screens }: { processes: HolderProcesses; store: ProcessStore; screens: Screens },
  req: IncomingMessage,
  res: ServerResponse,
  route: Route,
): Promise<void> {
  const [, processId = '', what, more] = route.path;
  if (more !== undefined) throw notFoundHere();
  switch (`${req.method} ${processId === '' ? '' : what}`) {
    case 'POST ': {
      const { process, isNew } = await processes.start(startOf(await jsonOf(req, maxStartBytes)));
      return send(res, isNew ? 201 : 200, process);
    }
    case 'DELETE undefined': {
      await store.remove(processId);
      return send(res, 200, {});
    }
    case 'POST input': {
      const number = inputNumberOf(route);
      const bytes = await bodyOf(req, maxInputBytes);
      await processes.input(processId, { number, bytes, eof: flagOf(route, 'eof') });
      return send(res, 200, {});
    }
    case 'POST signal': {
      const signal = requireSignal((await jsonOf(req, 1_000)).signal);
      return send(res, 200, { signalled: await processes.signal(processId, signal) });
    }
    case 'POST resize': {
      const { cols, rows } = await jsonOf(req, 1_000);
      await processes.resize(processId, requireSize(cols, rows));
      return send(res, 200, {});
    }
    case 'GET screen': {
      const info = await store.info(processId);
      if (info.pty === null) throw noTerminal();
      const gone = new AbortController();
      res.once('close', () => gone.abort());
      return send(res, 200, await screens.draw(processId, info.pty, gone.signal));
    }
    default:
      throw notFoundHere();
  }
}

/** The writer and the number of an input. Undefined for an input without them. */
function inputNumberOf(route: Route): InputNumber | undefined {
  const seq = numberOf(route, 'seq');
  const writer = route.query.get('writer')?.toString();
  if (seq === undefined && writer === undefined) return undefined;
  if (seq === undefined || seq === 0 || writer === undefined || writer === '' || writer.length > 100) {
    throw new DomainError('invalid', 'QUERY_INVALID', 'A numbered input needs its writer and its number, from 1 on.');
  }
  return { writer, seq };
}

/** Checks the types of a start request's fields. `requireStartable` checks their values. */
function startOf(body: Record<string, unknown>): StartProcess {
  const { processId, command, cwd, env, usualEnv, pty, input, stdin, timeoutMs, isPrivate, files } = body;
  const isCommand =
    typeof command === 'string' || (Array.isArray(command) && command.every((part) => typeof part === 'string'));
  const isValid =
    typeof processId === 'string' &&
    isCommand &&
    (cwd === undefined || typeof cwd === 'string') &&
    [env, usualEnv].every(
      (variables) => variables === undefined || (typeof variables === 'object' && variables !== null),
    ) &&
    (pty === undefined || (typeof pty === 'object' && pty !== null)) &&
    [input, isPrivate].every((flag) => flag === undefined || typeof flag === 'boolean') &&
    (stdin === undefined || typeof stdin === 'string') &&
    (timeoutMs === undefined || typeof timeoutMs === 'number') &&
    (files === undefined || isExpectedFiles(files));
  if (!isValid) throw new DomainError('invalid', 'BODY_INVALID', 'The body is not a process to start.');
  return body as unknown as StartProcess;
}

function isExpectedFiles(value: unknown): boolean {
  const { folder, sha256 } = (value ?? {}) as Record<string, unknown>;
  if (typeof folder !== 'string' || typeof sha256 !== 'object' || sha256 === null) return false;
  return Object.values(sha256).every((hash) => typeof hash === 'string');
}
