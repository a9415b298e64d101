import type { ModelPart } from '../../integrations/chat/modelCall.ts';
import type { Redactor } from '../../models/secrets/redactor.ts';
import type { StreamRedactor } from '../../telemetry/streamRedactor.ts';

type DeltaPart = Extract<ModelPart, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>;
type EndPart = Extract<ModelPart, { type: 'text-end' | 'reasoning-end' | 'tool-input-end' }>;

/** Redacts secrets in a model's output before any of it is written, even values split over several deltas. */
export class PartRedaction {
  readonly #redactor: Redactor;
  readonly #open = new Map<string, { last: DeltaPart; stream: StreamRedactor }>();

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** Returns the parts that may be shown now. A possible beginning of a secret is held back for a later part. */
  add(part: ModelPart): ModelPart[] {
    if (this.#redactor.isEmpty) return [part];
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        return this.#delta(part);
      case 'text-end':
      case 'reasoning-end':
      case 'tool-input-end':
        return [...this.#end(part), part];
      case 'tool-call':
        return [{ ...part, input: this.#redactor.text(part.input) }];
      case 'source':
        return [this.#redactor.json(part) as ModelPart];
      default:
        return [part];
    }
  }

  /** Returns the text that was held back. Call it when the answer ends or breaks off. */
  rest(): ModelPart[] {
    const parts = [...this.#open.values()].flatMap(({ last, stream }) => asDelta(last, stream.rest()));
    this.#open.clear();
    return parts;
  }

  #delta(part: DeltaPart): ModelPart[] {
    const key = `${part.type} ${part.id}`;
    const { stream } = this.#open.get(key) ?? { stream: this.#redactor.stream() };
    this.#open.set(key, { last: part, stream });
    return asDelta(part, stream.push(part.delta));
  }

  #end(part: EndPart): ModelPart[] {
    const key = `${part.type.replace(/-end$/, '-delta')} ${part.id}`;
    const open = this.#open.get(key);
    this.#open.delete(key);
    return open === undefined ? [] : asDelta(open.last, open.stream.rest());
  }
}

function asDelta(part: DeltaPart, delta: string): ModelPart[] {
  return delta === '' ? [] : [{ ...part, delta }];
}
