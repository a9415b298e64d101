import { DomainError } from '../../../../base/errors.ts';
import { HostClient } from '../../hostClient.ts';
import type { HostContext } from '../context.ts';
import { within } from '../deadline.ts';
import { computerLayout } from '../layout.ts';

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
