import { setTimeout as delay } from 'node:timers/promises';
import { startAtrium } from './atrium.ts';

interface Times {
  /** From the request to the first output, for a stopped computer. */
  wakes: number[];
  /** From the request to the answer, for a running computer. */
  execs: number[];
  /** The reference for each wake. */
  bare: number[];
  /** The reference for each command. */
  processes: number[];
}

/** The same work without Atrium. */
interface References {
  byHand: () => Promise<number>;
  bareProcess: () => Promise<number>;
}

/** Uses a space's own computer as a client of the API does, in an Atrium as `npm start` runs it. */
export async function timesByApi(rounds: number, { byHand, bareProcess }: References): Promise<Times> {
  const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn' });
  const { send, call } = atrium;
  try {
    const { data } = await call<{ data: { id: string }[] }>('GET', '/api/spaces');
    const computers = `/api/spaces/${data[0]?.id}/computers`;
    const { computerId } = await call<{ computerId: string }>('GET', `${computers}/status`);
    const computer = `${computers}/${computerId}`;
    const firstOutput = async () => {
      const begin = performance.now();
      const response = await send('POST', `${computer}/exec`, { command: ['echo', 'awake'] }, 'text/event-stream');
      let text = '';
      let time: number | undefined;
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString();
        if (text.includes('awake')) time ??= performance.now() - begin;
      }
      if (time === undefined) throw new Error(text);
      return time;
    };
    const times: Times = { wakes: [], execs: [], bare: [], processes: [] };
    await firstOutput();
    for (let n = 0; n < rounds; n++) {
      times.processes.push(await bareProcess());
      const begin = performance.now();
      await call('POST', `${computer}/exec`, { command: ['true'] });
      times.execs.push(performance.now() - begin);
      await call('POST', `${computer}/stop`);
      await delay(1_000); // time for the next holder to start and rehearse
      times.bare.push(await byHand());
      times.wakes.push(await firstOutput());
    }
    return times;
  } finally {
    await atrium.stop();
  }
}
