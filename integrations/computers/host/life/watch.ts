import { DomainError } from '../../../../base/errors.ts';
import { HostClient } from '../../hostClient.ts';
import type { HolderEnd } from '../../protocol/holderSpec.ts';
import type { HostContext } from '../context.ts';
import { within } from '../deadline.ts';
import { describeRoom, isScarce } from '../disks/disks.ts';
import { isOverLimit } from '../disks/overLimit.ts';
import type { FileSandboxes } from '../files/fileSandboxes.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { holdsTooMuchNetlink } from '../machine/network.ts';
import { type ComputerRun, listRecords, readRecord } from '../records.ts';
import { end, isRunning } from './end.ts';

/** Looks, as long as it is not stopped, whether what should run does, and whether what has no limit of its own keeps within one. */
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
    for (const { computerId, run } of listRecords(context.layout)) {
      if (run?.phase !== 'running' || run.pausedAt !== null) answering.forget(computerId);
      if (run?.phase !== 'running') continue;
      await lookAt(computerId, async () => {
        const reason = await reasonToEnd(context, computerId, run);
        if (reason !== undefined) await lanes.in(computerId, () => endUnasked(context, computerId, reason));
        if (reason !== undefined || run.pausedAt !== null) return;
        const silent = await answering.look(computerId, run.spec.generation);
        if (silent !== undefined) await lanes.in(computerId, () => endSilent(context, computerId, silent));
      });
    }
    // Nothing else limits what is written beside a computer that does not run.
    for (const computerId of working.openIds) {
      await lookAt(computerId, async () => {
        if (!(await isOverLimit(context, computerId))) return;
        await lanes.in(computerId, () => working.close(computerId));
        log('warn', { computerId }, 'What worked on a computer’s files was ended: its home is larger than its limit');
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
    return 'it left too much unread in netlink sockets, which no limit of memory counts';
  }
  return (await isOverLimit(context, computerId)) ? 'its home is larger than its limit' : undefined;
}

/** Unless it was paused meanwhile, which it has every right to be silent for. */
async function endSilent(context: HostContext, computerId: string, reason: string): Promise<void> {
  if (readRecord(context.layout, computerId)?.run?.pausedAt === null)
    await endUnasked(context, computerId, reason, 'COMPUTER_NOT_ANSWERING');
}

async function endUnasked(
  context: HostContext,
  computerId: string,
  reason: string,
  code?: HolderEnd['code'],
): Promise<void> {
  const record = readRecord(context.layout, computerId);
  if (record?.run?.phase !== 'running') return;
  const ended = await end(context, record, reason, 0, code);
  context.log('warn', { computerId, reason: ended.reason }, 'A computer has ended');
  context.options.onEnd?.(computerId, ended);
}

/** For one question to a holder that has been silent: whether it is the holder, or the agent behind it. */
const lastAskMs = 2_000;

interface Question {
  generation: number;
  isOpen: boolean;
  /** Looks since it was first asked without an answer, or since the last answer. */
  looks: number;
}

/**
 * Whether the holders of running computers, and the agents in them, do what is asked of them. Both can stand still and
 * be alive: stopped by a signal, or kept busy by what they were given. What is counted is looks, not time: while the host
 * itself stands still, it has not asked anybody.
 */
export class Answering {
  readonly #context: HostContext;
  readonly #questions = new Map<string, Question>();

  constructor(context: HostContext) {
    this.#context = context;
  }

  /** Asked at each look, for a computer that runs and is not paused. The answer is why to end it, if there is a reason. */
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

  /** It is paused, or no longer there: nothing is expected of it. */
  forget(computerId: string): void {
    this.#questions.delete(computerId);
  }

  #ask(computerId: string, question: Question): void {
    question.isOpen = true;
    this.#client(computerId)
      .ping()
      .then(
        () => true,
        // One from before a newer release does not know the question, and has answered.
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
