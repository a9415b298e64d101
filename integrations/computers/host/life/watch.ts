import { DomainError } from '../../../../base/errors.ts';
import { HostClient } from '../../hostClient.ts';
import type { HolderEnd } from '../../protocol/holderSpec.ts';
import type { HostContext } from '../context.ts';
import { describeRoom, isScarce } from '../disks/disks.ts';
import { isOverLimit } from '../disks/overLimit.ts';
import type { FileSandboxes } from '../files/fileSandboxes.ts';
import { within } from '../hostErrors.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { holdsTooMuchNetlink } from '../machine/network.ts';
import { type ComputerRun, listComputerIds, readRecord } from '../records.ts';
import { end, isRunning } from './end.ts';

/**
 * Checks at intervals that recorded computers run, that their holders and agents answer, and that resources without a
 * kernel limit stay within their limits.
 */
export function watch(
  context: HostContext,
  lanes: Lanes,
  working: Pick<FileSandboxes, 'openIds' | 'close'>,
): { stop(): void } {
  const { deadlines, log } = context;
  const answering = new Answering(context);
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let wasScarce = false;
  const lookAtDisk = () => {
    const room = context.disks.room();
    if (isScarce(room) && !wasScarce) log('warn', { ...room }, `The host’s disk is nearly full: ${describeRoom(room)}`);
    wasScarce = isScarce(room);
  };
  const look = async () => {
    lookAtDisk();
    for (const computerId of listComputerIds(context.layout)) {
      // Not before: the looks at the others take time.
      const run = readRecord(context.layout, computerId)?.run;
      if (run?.phase !== 'running' || run.pausedAt !== null) answering.forget(computerId);
      if (run?.phase !== 'running') continue;
      await lookAt(computerId, async () => {
        const { generation } = run.spec;
        const reason = await reasonToEnd(context, computerId, run);
        if (reason !== undefined)
          await lanes.in(computerId, () => endUnasked(context, computerId, { generation, reason }));
        if (reason !== undefined || run.pausedAt !== null) return;
        const silent = await answering.look(computerId, generation);
        if (silent !== undefined)
          await lanes.in(computerId, () => endSilent(context, computerId, { generation, reason: silent }));
      });
    }
    // Nothing else limits what programs beside a stopped computer write.
    for (const computerId of working.openIds) {
      await lookAt(computerId, async () => {
        if (!(await isOverLimit(context, computerId))) return;
        await lanes.in(computerId, () => working.close(computerId));
        log('warn', { computerId }, 'Programs beside a stopped computer were ended: its home is larger than its limit');
      });
    }
  };
  const lookAt = async (computerId: string, work: () => Promise<void>) => {
    if (stopped || lanes.isBusy(computerId)) return;
    try {
      await work();
    } catch (error) {
      log('warn', { computerId, error }, 'A computer could not be looked after');
    }
  };
  const again = () => {
    const failed = (error: unknown) => log('warn', { error }, 'The computers could not be looked after');
    timer = setTimeout(
      () =>
        void look()
          .catch(failed)
          .finally(() => !stopped && again()),
      deadlines.watchMs,
    );
    timer.unref();
  };
  again();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

async function reasonToEnd(context: HostContext, computerId: string, run: ComputerRun): Promise<string | undefined> {
  if (!isRunning(run)) return 'its holder ended without a word';
  const { sandbox } = run;
  if (sandbox !== null && context.uids !== undefined && holdsTooMuchNetlink(sandbox.init.pid)) {
    return 'it left too much unread in netlink sockets, which the memory limit does not count';
  }
  return (await isOverLimit(context, computerId)) ? 'its home is larger than its limit' : undefined;
}

/** Does nothing if the computer was paused meanwhile, because a paused one is silent. */
async function endSilent(context: HostContext, computerId: string, found: Omit<Found, 'code'>): Promise<void> {
  if (readRecord(context.layout, computerId)?.run?.pausedAt === null)
    await endUnasked(context, computerId, { ...found, code: 'COMPUTER_NOT_ANSWERING' });
}

interface Found extends Pick<HolderEnd, 'reason' | 'code'> {
  /** The run that has to end. Without it, any run. */
  generation?: number;
}

/** Ends a run that nobody asked to end. Does nothing if that run has ended, also if the computer runs again. */
export async function endUnasked(
  context: HostContext,
  computerId: string,
  { generation, reason, code }: Found,
): Promise<void> {
  const record = readRecord(context.layout, computerId);
  if (record?.run?.phase !== 'running') return;
  if (generation !== undefined && record.run.spec.generation !== generation) return;
  const ended = await end(context, record, reason, 0, code);
  context.log('warn', { computerId, reason: ended.reason }, 'A computer has ended');
  context.options.onEnd?.(computerId, ended);
}

/** Time limit for a last request to a silent holder. It tells whether the holder or the agent behind it hangs. */
const lastAskMs = 2_000;

interface Question {
  generation: number;
  isOpen: boolean;
  /** Looks since the first unanswered question, or since the last answer. */
  looks: number;
}

/**
 * Checks that the holders of running computers, and the agents in them, answer. Both can be alive and hang: stopped by
 * a signal, or kept busy. Counts looks, not time: while the host itself stands still, it asks no holder.
 */
export class Answering {
  readonly #context: HostContext;
  readonly #questions = new Map<string, Question>();

  constructor(context: HostContext) {
    this.#context = context;
  }

  /** Called at each look, for a running computer that is not paused. Returns a reason to end it, if any. */
  async look(computerId: string, generation: number): Promise<string | undefined> {
    const { watchMs, askMs, silentMs } = this.#context.deadlines;
    let question = this.#questions.get(computerId);
    if (question?.generation !== generation) {
      question = { generation, isOpen: false, looks: 0 };
      this.#questions.set(computerId, question);
    }
    question.looks++;
    const ms = question.looks * watchMs;
    if (!question.isOpen && ms >= askMs) this.#ask(computerId, question);
    if (ms < silentMs) return undefined;
    const who = (await this.#holderAnswers(computerId)) ? 'agent' : 'holder';
    return `its ${who} did not answer for ${Math.ceil(silentMs / 1_000)} s`;
  }

  /** The computer is paused or gone, so no answer is expected. */
  forget(computerId: string): void {
    this.#questions.delete(computerId);
  }

  #ask(computerId: string, question: Question): void {
    question.isOpen = true;
    this.#client(computerId)
      .ping()
      .then(
        () => true,
        // A holder of an older release answers 404, since it does not know this request. That is an answer too.
        (error: unknown) => error instanceof DomainError && error.kind === 'notFound',
      )
      .then((hasAnswered) => {
        question.isOpen = false;
        if (hasAnswered) question.looks = 0;
      })
      .catch(() => undefined);
  }

  async #holderAnswers(computerId: string): Promise<boolean> {
    return within(this.#client(computerId).status(), lastAskMs, 'its holder’s answer').then(
      () => true,
      () => false,
    );
  }

  #client(computerId: string): HostClient {
    return new HostClient({ socketPath: computerLayout(this.#context.layout, computerId).socket });
  }
}
