import type { Request } from 'express';
import { collectOutput } from '../../../integrations/computers/collectOutput.ts';
import type { ComputerRef } from '../../../integrations/computers/liveComputers.ts';
import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import { signatureOf } from '../../../integrations/git/rules/person.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { DomainError } from '../../../models/errors.ts';
import { newId } from '../../../models/ids.ts';
import { answer } from '../../frame/answer.ts';
import { actorOf } from '../../frame/auth/actor.ts';
import { authorOf } from '../../frame/auth/authorOf.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { goneOf } from '../../frame/goneOf.ts';
import { bodyOf, pathOf, queryOf } from '../../frame/request.ts';
import { createRouter } from '../../frame/router.ts';
import { presentProcess } from './presentProcess.ts';
import { afterOf, positionUnknown, sendText, wantsEvents } from './sendText.ts';
import { streamOutput } from './streamOutput.ts';

/** Of each of an exec’s streams. */
const maxExecBytes = 1_048_576;
const execTimeoutMs = 300_000;

/** Commands on a computer, in the foreground and in the background. */
export function processRoutes(deps: RouteDeps) {
  const { database, liveComputers } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId';
  const one = `${base}/processes/:processId`;

  router.post(`${base}/exec`, async (req, res) => {
    const { stdin, timeoutMs = execTimeoutMs, ...start } = bodyOf<'execComputer'>(req);
    const processId = start.processId ?? newId('process');
    const client = await liveComputers.awake(pathOf<'execComputer'>(req), actorOf(req));
    const input = stdin === undefined ? {} : { stdin: Buffer.from(stdin).toString('base64') };
    await client.startProcess({ ...start, ...input, processId, timeoutMs, usualEnv: await signature(req) });
    if (wantsEvents(req)) {
      const open = (signal: AbortSignal) => client.output(processId, { follow: true, signal });
      return streamOutput(deps, req, res, { open, processId });
    }
    const gone = goneOf(res);
    const records = client.output(processId, { follow: true, signal: gone });
    const { stdout, stderr, truncated, exit, position } = await collectOutput(records, { maxBytes: maxExecBytes });
    const { state = 'lost', exitCode = null, signal = null, killedBy = null } = exit ?? {};
    const ended = { processId, state, exitCode, signal, killedBy };
    answer<'execComputer'>(res, 200, { ...ended, stdout, stderr, outputBytes: position, truncated });
  });

  router.get(`${base}/processes`, async (req, res) => {
    const data = (await processesOf(pathOf<'listProcesses'>(req))).map(presentProcess);
    answer<'listProcesses'>(res, 200, { data, nextCursor: null });
  });

  router.post(`${base}/processes`, async (req, res) => {
    const { processId = newId('process'), ...start } = bodyOf<'startProcess'>(req);
    const client = await liveComputers.awake(pathOf<'startProcess'>(req), actorOf(req));
    const { process } = await client.startProcess({ ...start, processId, usualEnv: await signature(req) });
    answer<'startProcess'>(res, 201, presentProcess(process));
  });

  router.get(one, async (req, res) => {
    const { processId, ...ref } = pathOf<'getProcess'>(req);
    const client = await liveComputers.asIs(ref);
    answer<'getProcess'>(res, 200, presentProcess(await client.process(processId)));
  });

  router.get(`${one}/output`, async (req, res) => {
    const { processId, ...ref } = pathOf<'readProcessOutput'>(req);
    const client = await liveComputers.asIs(ref);
    const after = afterOf(req, queryOf<'readProcessOutput'>(req).after);
    if (after > (await client.process(processId)).outputBytes) throw positionUnknown();
    if (wantsEvents(req)) {
      const open = (signal: AbortSignal) => client.output(processId, { after, follow: true, signal });
      return streamOutput(deps, req, res, { open });
    }
    const { outputBytes } = await client.process(processId);
    await sendText(res, outputBytes, (signal) => client.output(processId, { after, signal }));
  });

  router.post(`${one}/input`, async (req, res) => {
    const { processId, ...ref } = pathOf<'sendProcessInput'>(req);
    const { writer, seq, text, base64, eof } = bodyOf<'sendProcessInput'>(req);
    if ((writer === undefined) !== (seq === undefined)) {
      throw new DomainError('invalid', 'INPUT_UNNUMBERED', 'Send `writer` and `seq` together, or neither.');
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

  const signature = async (req: Request) => signatureOf(await authorOf(deps, req));

  /** One that was never used has none. */
  async function processesOf(ref: ComputerRef): Promise<ProcessInfo[]> {
    const { hostId } = await getComputer(database, ref.spaceId, ref.computerId);
    return hostId === null ? [] : (await liveComputers.asIs(ref)).listProcesses();
  }

  return router;
}
