import { buffer } from 'node:stream/consumers';
import { readPdfText } from '../../../integrations/documents/pdfText.ts';
import type { ModelCapabilities } from '../../../integrations/llm/catalogue.ts';
import { isText } from '../../../integrations/storage/contentType.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { isImageType, isPdfType } from '../../../models/chat/attachments.ts';
import { DomainError } from '../../../models/errors.ts';
import { ByteCache } from './byteCache.ts';

/** What a model gets of a file. */
export type FileView =
  | { kind: 'seen'; mediaType: string; base64: string }
  /** `hasMore`: the file goes on behind this text, of which only the beginning was read. */
  | { kind: 'text'; text: string; pageCount?: number; hasMore: boolean }
  | { kind: 'absent'; why: string };

/** A file's bytes, wherever they are. The same key always means the same bytes. */
export interface FileSource {
  key: string;
  contentType: string;
  size: number;
  read(range?: { start: number; end: number }): Promise<Buffer>;
}

/** What every provider takes of one picture, and of one document. */
const maxImageBytes = 3_750_000;
const maxSeenPdfBytes = 10_000_000;
const maxReadPdfBytes = 50_000_000;
/** More text than any budget lets through. */
const maxTextBytes = 2_000_000;
const cacheBytes = 64 * 1_048_576;

/** Reads attached files for prompts. A turn of many steps asks for the same ones each time, so what was read is kept a while. */
export class AttachmentReader {
  readonly #storage: Pick<ObjectStore, 'read'>;
  readonly #cache = new ByteCache<FileView>(cacheBytes);

  constructor(storage: Pick<ObjectStore, 'read'>) {
    this.#storage = storage;
  }

  /** A file of the object store. */
  stored(content: { objectKey: string; contentType: string; size: number }): FileSource {
    const { objectKey: key, contentType, size } = content;
    return { key, contentType, size, read: async (range) => buffer(await this.#storage.read(key, range)) };
  }

  /** Images and PDFs for a model that sees them; the text of whatever else has one. */
  async view(source: FileSource, model: Pick<ModelCapabilities, 'images' | 'pdf'>): Promise<FileView> {
    const asSeen = canSee(source, model);
    const key = `${asSeen ? 'seen' : 'text'} ${source.key}`;
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    try {
      const view = await (asSeen ? see(source) : readAsText(source));
      this.#cache.set(
        key,
        view,
        view.kind === 'seen' ? view.base64.length : view.kind === 'text' ? view.text.length : 0,
      );
      return view;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'CONTENT_MISSING')
        return { kind: 'absent', why: 'it is gone' };
      // The store is away for a moment: the activity is tried again, instead of answering as if there were no file.
      throw error instanceof DomainError ? new Error('An attached file could not be read.', { cause: error }) : error;
    }
  }
}

function canSee({ contentType, size }: FileSource, model: Pick<ModelCapabilities, 'images' | 'pdf'>): boolean {
  if (isImageType(contentType)) return model.images && size <= maxImageBytes;
  return isPdfType(contentType) && model.pdf && size <= maxSeenPdfBytes;
}

async function see({ contentType, read }: FileSource): Promise<FileView> {
  return { kind: 'seen', mediaType: contentType, base64: (await read()).toString('base64') };
}

async function readAsText({ contentType, size, read }: FileSource): Promise<FileView> {
  if (size === 0) return { kind: 'text', text: '', hasMore: false };
  if (isImageType(contentType)) {
    return { kind: 'absent', why: size > maxImageBytes ? 'the image is too large' : 'this model sees no images' };
  }
  if (isPdfType(contentType)) return readPdf(size, read);
  const bytes = await read({ start: 0, end: Math.min(size, maxTextBytes) - 1 });
  if (!isText(bytes)) return { kind: 'absent', why: 'it is no text' };
  return { kind: 'text', text: new TextDecoder().decode(bytes, { stream: true }), hasMore: size > bytes.length };
}

async function readPdf(size: number, read: FileSource['read']): Promise<FileView> {
  if (size > maxReadPdfBytes) return { kind: 'absent', why: 'the PDF is too large' };
  const pdf = await readPdfText({ bytes: await read(), maxCharacters: maxTextBytes });
  if (pdf === undefined) return { kind: 'absent', why: 'the PDF cannot be read' };
  const text = pdf.pages.map((page, index) => `[page ${index + 1}]\n${page}`).join('\n\n');
  if (pdf.pages.every((page) => page === ''))
    return { kind: 'absent', why: 'the PDF has no text in it, only pictures' };
  return { kind: 'text', text, pageCount: pdf.pageCount, hasMore: pdf.pages.length < pdf.pageCount };
}
