import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { CatalogueModel } from '../../../integrations/chat/catalogue.ts';
import type { StoredPart } from '../../../models/chat/message.ts';
import { contentOfPicture, type PictureType, pictureTypeOf } from '../../../models/chat/resultPictures.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import type { Database } from '../../../models/database/database.ts';
import type { AttachmentReader, FileView } from './attachmentReader.ts';
import { tokensPerImage } from './budget.ts';
import type { FileAllowance } from './userContent.ts';

/**
 * How many pictures are dropped at a time. Dropping them one by one would change the prompt at each step, and the
 * provider's cache would never match.
 */
const leftOutAtOnce = 3;
/** A prompt shows at least this many of the latest pictures, and at most two more. Earlier ones are rarely useful. */
const leastShown = 2;
/** The share of a prompt that pictures may take. */
const share = 0.25;

type Output = LanguageModelV4ToolResultPart['output'];
type ToolPart = Extract<StoredPart, { type: 'dynamic-tool' }>;

interface Deps {
  database: Database;
  attachments: AttachmentReader;
}

interface Request {
  turn: Turn;
  model: Pick<CatalogueModel, 'capabilities'>;
  budget: number;
}

/** The pictures in tool results that a model is shown. */
export class ResultPictures {
  readonly #views = new Map<string, FileView>();
  readonly #hidden: string;

  private constructor(hidden: string) {
    this.#hidden = hidden;
  }

  /**
   * Reads the newest pictures among the parts, which are in order of time. Their bytes count against the allowance for
   * files.
   */
  static async of(
    { database, attachments }: Deps,
    { turn, model, budget }: Request,
    parts: readonly StoredPart[],
    allowance: FileAllowance,
  ): Promise<ResultPictures> {
    if (!model.capabilities.images) return new ResultPictures('this model cannot see images');
    const pictures = new ResultPictures('later pictures take its place');
    const found = parts.flatMap(picturesIn);
    const leftOut = leftOutAtOnce * Math.max(0, Math.floor((found.length - leastShown) / leftOutAtOnce));
    const most = Math.floor((budget * share) / tokensPerImage);
    for (const { toolCallId, type } of found.slice(Math.max(leftOut, found.length - most)).reverse()) {
      const content = await contentOfPicture(database, turn, toolCallId, type);
      const view: FileView =
        content === undefined
          ? { kind: 'absent', why: 'the file has been deleted since' }
          : await attachments.view(attachments.stored(content), { spaceId: turn.spaceId, model: model.capabilities });
      if (view.kind === 'seen') {
        if (view.base64.length > allowance.seenCharacters) break;
        allowance.seenCharacters -= view.base64.length;
      }
      pictures.#views.set(toolCallId, view);
    }
    return pictures;
  }

  /** A call's result as the model gets it: its `text` with its picture, or the reason why the picture is not shown. */
  outputOf(part: ToolPart, text: string): Output {
    if (pictureTypeOf(part.output) === undefined) return { type: 'text', value: text };
    const view = this.#views.get(part.toolCallId);
    if (view?.kind !== 'seen') {
      const why = view?.kind === 'absent' ? view.why : this.#hidden;
      return { type: 'text', value: `${text}\n[The picture is not shown: ${why}]` };
    }
    const { mediaType, base64 } = view;
    return {
      type: 'content',
      value: [
        { type: 'text', text },
        { type: 'file', mediaType, data: { type: 'data', data: base64 } },
      ],
    };
  }
}

function picturesIn(part: StoredPart): { toolCallId: string; type: PictureType }[] {
  if (part.type !== 'dynamic-tool' || part.state !== 'output-available') return [];
  const type = pictureTypeOf(part.output);
  return type === undefined ? [] : [{ toolCallId: part.toolCallId, type }];
}
