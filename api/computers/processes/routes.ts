import type { Request } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { idPrefixes, newId } from '../../../base/ids.ts';
import { requireNoLoading } from '../../../base/loadingVariables.ts';
import type { HostClient, OutputRequest } from '../../../integrations/computers/hostClient.ts';
import type { ComputerRef } from '../../../integrations/computers/liveComputers.ts';
import { collectOutput } from '../../../integrations/computers/output/collectOutput.ts';
import { maskedOutput } from '../../../integrations/computers/output/maskedOutput.ts';
import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import { signatureOf } from '../../../integrations/git/rules/person.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { isAtLeast } from '../../../models/identity/roles.ts';
import type { Redactor } from '../../../models/secrets/redactor.ts';
import { type AnswerOf, answer } from '../../frame/answer.ts';
import { actorOf } from '../../frame/auth/actor.ts';
import { spaceOf } from '../../frame/auth/authorizeSpace.ts';
import { authorOf } from '../../frame/auth/authorOf.ts';
import { callerOf, requireScope } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { goneOf } from '../../frame/goneOf.ts';
import { bodyOf, pathOf, queryOf } from '../../frame/request.ts';
import { createRouter } from '../../frame/router.ts';
import { inTurn } from './inTurn.ts';
import { afterOf, positionUnknown, sendText, wantsEvents } from './sendText.ts';
import { streamOutput } from './streamOutput.ts';

/** The limit for each stream of an exec's answer. */
const maxExecBytes = 1_048_576;
const execTimeoutMs = 300_000;

/** Commands on a computer, in the foreground and in the background. */
export function processRoutes(deps: RouteDeps) {
  const { database, liveComputers, secrets } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId';
  const one = `${base}/processes/:processId`;

  router.post(`${base}/exec`, async (req, res) => {
    const { stdin, timeoutMs = execTimeoutMs, ...start } = bodyOf<'execComputer'>(req);
    requireFreeId(start.processId);
    requireNoLoading(start.env);
    const processId = start.processId ?? newId('process');
    const client = await liveComputers.awake(pathOf<'execComputer'>(req), actorOf(req));
    const input = stdin === undefined ? {} : { stdin: Buffer.from(stdin).toString('base64') };
    await client.startProcess({ ...start, ...input, processId, timeoutMs, usualEnv: await signature(req) });
    if (wantsEvents(req)) {
      const open = (signal: AbortSignal) => outputOf(req, client, processId, { follow: true, signal });
      return streamOutput(deps, req, res, { open, processId });
    }
    const gone = goneOf(res);
    const output = outputOf(req, client, processId, { follow: true, signal: gone });
    const records = inTurn(output, { userId: callerOf(req).userId, signal: gone });
    const { stdout, stderr, truncated, exit, position } = await collectOutput(records, { maxBytes: maxExecBytes });
    const { state = 'lost', exitCode = null, signal = null, killedBy = null } = exit ?? {};
    const ended = { processId, state, exitCode, signal, killedBy };
    answer<'execComputer'>(res, 200, { ...ended, stdout, stderr, outputBytes: position, truncated });
  });

  router.get(`${base}/processes`, async (req, res) => {
    const ref = pathOf<'listProcesses'>(req);
    const processes = await processesOf(ref);
    const redactor = await secrets.redactors.forSpace(ref.spaceId);
    const data = processes.map((info) => presentProcess(info, redactor));
    answer<'listProcesses'>(res, 200, { data, nextCursor: null });
  });

  router.post(`${base}/processes`, async (req, res) => {
    const { processId = newId('process'), ...start } = bodyOf<'startProcess'>(req);
    requireFreeId(processId);
    requireNoLoading(start.env);
    const ref = pathOf<'startProcess'>(req);
    const client = await liveComputers.awake(ref, actorOf(req));
    const { process } = await client.startProcess({ ...start, processId, usualEnv: await signature(req) });
    answer<'startProcess'>(res, 201, presentProcess(process, await secrets.redactors.forSpace(ref.spaceId)));
  });

  router.get(one, async (req, res) => {
    const { processId, ...ref } = pathOf<'getProcess'>(req);
    const client = await liveComputers.asIs(ref);
    const process = await client.process(processId);
    answer<'getProcess'>(res, 200, presentProcess(process, await secrets.redactors.forSpace(ref.spaceId)));
  });

  router.get(`${one}/output`, async (req, res) => {
    const { processId, ...ref } = pathOf<'readProcessOutput'>(req);
    const client = await liveComputers.asIs(ref);
    const after = afterOf(req, queryOf<'readProcessOutput'>(req).after);
    const { outputBytes, pty } = await client.process(processId);
    if (pty !== null) requireTerminalReader(req);
    if (after > outputBytes) throw positionUnknown();
    if (wantsEvents(req)) {
      const open = (signal: AbortSignal) => outputOf(req, client, processId, { after, follow: true, signal });
      const role = pty === null ? undefined : 'editor';
      return streamOutput(deps, req, res, { open, role });
    }
    await sendText(req, res, outputBytes, (signal) => outputOf(req, client, processId, { after, signal }));
  });

  router.post(`${one}/input`, async (req, res) => {
    const { processId, ...ref } = pathOf<'sendProcessInput'>(req);
    const { writer, seq, text, base64, eof } = bodyOf<'sendProcessInput'>(req);
    if ((writer === undefined) !== (seq === undefined)) {
      throw new DomainError('invalid', 'INPUT_UNNUMBERED', 'Send both `writer` and `seq`, or neither.');
    }
    const bytes = base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64');
    const client = await liveComputers.asIs(ref);
    const number = writer === undefined || seq === undefined ? undefined : { writer, seq };
    await client.sendInput(processId, { number, bytes, eof: eof ?? false });
    res.status(204).end();
  });

  router.post(`${one}/signal`, async (req, res) => {
    const { processId, ...ref } = pathOf<'signalProcess'>(req);
    const client = await liveComputers.unpaused(ref);
    await client.signalProcess(processId, bodyOf<'signalProcess'>(req).signal);
    res.status(204).end();
  });

  router.post(`${one}/resize`, async (req, res) => {
    const { processId, ...ref } = pathOf<'resizeProcess'>(req);
    const client = await liveComputers.unpaused(ref);
    await client.resizeProcess(processId, bodyOf<'resizeProcess'>(req));
    res.status(204).end();
  });

  /** A process's output, with the space's secrets masked. */
  function outputOf(req: Request, client: HostClient, processId: string, request: OutputRequest) {
    const { spaceId = '' } = req.pathParams ?? {};
    const masks = () => secrets.redactors.forSpace(spaceId);
    return maskedOutput((wanted) => client.output(processId, wanted), masks, request);
  }

  /**
   * Requires an editor for a terminal's output. Cursor movements stand between its letters, so masks find no secrets in
   * it. Editors could run a command that reads the secrets anyway.
   */
  function requireTerminalReader(req: Request): void {
    requireScope(callerOf(req), 'computers:write', ', which reading the output of a terminal needs');
    if (isAtLeast(spaceOf(req).role, 'editor')) return;
    const detail = 'Only editors of this space may read the output of a terminal, because it may contain secrets.';
    throw new DomainError('forbidden', 'ROLE_TOO_LOW', detail);
  }

  const signature = async (req: Request) => signatureOf(await authorOf(deps, req));

  /** A computer that was never used has no processes. */
  async function processesOf(ref: ComputerRef): Promise<ProcessInfo[]> {
    const { hostId } = await getComputer(database, ref.spaceId, ref.computerId);
    return hostId === null ? [] : (await liveComputers.asIs(ref)).listProcesses();
  }

  return router;
}

/** Presents a process to viewers. Secrets that its author typed into the command are masked. */
function presentProcess({ processId, ...info }: ProcessInfo, redactor: Pick<Redactor, 'text'>): AnswerOf<'getProcess'> {
  const { cwd, pty, state, exitCode, signal, killedBy, startedAt, endedAt, outputBytes, droppedBytes } = info;
  const command =
    typeof info.command === 'string' ? redactor.text(info.command) : info.command.map((part) => redactor.text(part));
  const ended = { state, exitCode, signal, killedBy, startedAt, endedAt };
  return { id: processId, command, cwd, pty, ...ended, outputBytes, droppedBytes };
}

/** Atrium starts its own processes under these predictable ids. */
const reserved = [idPrefixes.run, idPrefixes.toolCall, idPrefixes.environmentVersion].map((prefix) => `${prefix}_`);

/** Throws 422 `PROCESS_ID_RESERVED` for an id that would pass a caller's process off as Atrium's own. */
export function requireFreeId(processId: string | undefined): void {
  if (processId === undefined || !reserved.some((prefix) => processId.startsWith(prefix))) return;
  const detail = `Ids that begin with ${reserved.join(' or ')} are Atrium's own. Choose another.`;
  throw new DomainError('unprocessable', 'PROCESS_ID_RESERVED', detail);
}
