import type { Request, Response } from 'express';
import { collectOutput } from '../../../integrations/computers/collectOutput.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import type { ComputerRef } from '../../../integrations/computers/liveComputers.ts';
import { type Gap, isOutput, noteOf, positionAfter } from '../../../integrations/computers/processes/records.ts';
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
import { drained } from '../../frame/sse.ts';
import { presentProcess } from './presentProcess.ts';
import { streamOutput } from './streamOutput.ts';

/** Of each of an exec’s streams. */
const maxExecBytes = 1_048_576;
const execTimeoutMs = 300_000;
const events = 'text/event-stream';

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
    if (wantsEvents(req)) return streamOutput(deps, req, res, { client, processId, after: 0, saysProcess: true });
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
    const after = afterOf(req);
    if (after > (await client.process(processId)).outputBytes) throw positionUnknown();
    if (wantsEvents(req)) return streamOutput(deps, req, res, { client, processId, after });
    await sendText(res, client, processId, after);
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
    const client = await liveComputers.asIs(ref);
    await client.signalProcess(processId, bodyOf<'signalProcess'>(req).signal);
    res.status(204).end();
  });

  router.post(`${one}/resize`, async (req, res) => {
    const { processId, ...ref } = pathOf<'resizeProcess'>(req);
    const client = await liveComputers.asIs(ref);
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

/** What is kept now, as it was put out. */
async function sendText(res: Response, client: HostClient, processId: string, after: number): Promise<void> {
  const gone = goneOf(res);
  const { outputBytes } = await client.process(processId);
  res.set({ 'content-type': 'text/plain; charset=utf-8', 'x-output-position': String(outputBytes) });
  try {
    for await (const record of client.output(processId, { after, signal: gone })) {
      // What came since the position was told is for the next request.
      if (record.position >= outputBytes) break;
      const { kind, position, payload } = record;
      if (isOutput(kind)) res.write(payload.subarray(0, outputBytes - position));
      else if (kind === 'gap') res.write(`\n[${noteOf<Gap>(record).droppedBytes} bytes were dropped here]\n`);
      await drained(res);
      if (positionAfter(record) >= outputBytes) break;
    }
    res.end();
  } catch (error) {
    if (!res.headersSent) throw error;
    // The reader must see that this is not all.
    res.destroy();
  }
}

function wantsEvents(req: Request): boolean {
  return req.accepts(['application/json', 'text/plain', events]) === events;
}

/** The header is the browser’s own when it connects again, so it is the newer one. */
function afterOf(req: Request): number {
  const last = req.get('last-event-id');
  return last === undefined ? (queryOf<'readProcessOutput'>(req).after ?? 0) : Number(last);
}

function positionUnknown(): DomainError {
  return new DomainError('invalid', 'POSITION_UNKNOWN', 'The process has not put out so much.');
}
